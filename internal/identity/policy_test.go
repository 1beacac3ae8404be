package identity

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/handshake"
)

func policy(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := parsePeers("peers", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shared is the shared secret whose bytes are n.
func shared(n byte) *handshake.SharedKey {
	return (*handshake.SharedKey)(bytes.Repeat([]byte{n}, handshake.KeySize))
}

// peerID is the ID of the peer whose public key has the bytes n.
func peerID(n byte) ID { return PublicID(handshake.PublicKey(*shared(n))) }

// TestPeers: every word of a line arrives in the peer.
func TestPeers(t *testing.T) {
	p := policy(t, "# all words\n"+text(1)+" name=web-1 from=10.0.0.0/8,fd00::1 services=7,100-199,0x4d memory=read"+
		" expires=2027-01-31 connections=100 half-open=8 rate=50 bytes=64M # comment\n\n"+text(2)+" expires=2027-01-31T18:00:00+01:00 bytes=8K\n")
	want := []*Peer{{
		id: peerID(1), line: 2, name: "web-1",
		from:     []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::1/128")},
		services: []services{{7, 7}, {100, 199}, {0x4d, 0x4d}},
		expires:  time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC),
		limits:   Limits{100, 8, 50, 64 << 20, ReadAccess},
	}, {
		id: peerID(2), line: 4,
		expires: time.Date(2027, 1, 31, 17, 0, 0, 0, time.UTC),
		limits:  Limits{Bytes: 8 << 10, Memory: WriteAccess},
	}}
	options := []cmp.Option{cmp.AllowUnexported(Peer{}, services{}), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}
	if diff := cmp.Diff(want, p.peers, options...); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for n, name := range map[byte]string{1: "web-1", 2: "02020202"} {
		if got := p.Find(peerID(n)); got.String() != name || got.ID() != peerID(n) {
			t.Errorf("peer %d: got %v, want %s", n, got, name)
		}
	}
	if got := p.Find(peerID(3)); got != nil {
		t.Errorf("got %v for an unknown key", got)
	}
}

// TestSharedSecrets: a peer with a shared secret is found by the secret's key ID. Its ID is not the secret, and it is
// not that of a public key.
func TestSharedSecrets(t *testing.T) {
	p := policy(t, "psk:"+text(1)+" name=a\npsk:"+text(2)+" name=b\n"+text(1)+" name=c\n")
	for n, name := range map[byte]string{1: "a", 2: "b"} {
		peer := p.FindShared(shared(n).ID())
		var key handshake.SharedKey
		if peer.String() != name || !peer.Secret(&key) || key != *shared(n) {
			t.Errorf("got %v with secret %x, want %s", peer, key, name)
		}
		if id := peer.ID(); id.Form != handshake.NNpsk0 || id.Key == *shared(n) || p.Find(id) != peer {
			t.Errorf("got ID %v", id)
		}
	}
	if p.FindShared(shared(3).ID()) != nil || p.Find(peerID(2)) != nil {
		t.Error("found an unknown key")
	}
	if p.Find(peerID(1)).Secret(new(handshake.SharedKey)) {
		t.Error("a peer with a public key has a secret")
	}
}

// TestByteOrderMark: the error names a mark that an editor does not show.
func TestByteOrderMark(t *testing.T) {
	_, err := parsePeers("p", []byte("\xef\xbb\xbf"+text(1)))
	if want := "p: it begins with a byte order mark: save it as ASCII, or as UTF-8 without the mark"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestBadPeers(t *testing.T) {
	const begins = "a line begins with a public key, or psk: and a secret: "
	tests := []struct{ name, text, want string }{
		{"no key", "name=a", begins + "write 32 bytes in base64, which are 44 characters, not 6"},
		{"damaged", strings.Replace(text(1), "B", "!", 1), begins + "write 32 bytes in base64; this text is damaged"},
		{"no secret", "psk: " + text(1), "not a shared secret: write 32 bytes in base64, which are 44 characters, not 0"},
		{"zero", "psk:" + text(0), "not a shared secret: all bytes are 0: make one with datbench keygen"},
		{"two words in one", "psk:" + text(1) + ",name=a", "not a shared secret: write 32 bytes in base64, which are 44 characters, not 51"},
		{"two keys", text(1) + " " + text(2), "a text of 43 characters is not a word: write name=, from=, services=, memory=, expires=, connections=, half-open=, rate= or bytes="},
		{"unknown word", text(1) + " port=7", `"port" is not a word: write name=, from=, services=, memory=, expires=, connections=, half-open=, rate= or bytes=`},
		{"no value", text(1) + " name", "name has no value: write name=VALUE, without spaces"},
		{"empty value", text(1) + " from= 10.0.0.0/8", "from has no value: write from=VALUE, without spaces"},
		{"twice", text(1) + " rate=1 rate=1", "rate= is there twice: write it once"},
		{"bad name", text(1) + " name=a\"b", `name=: "a\"b" is not a name: write at most 40 letters, digits and - _ . : @`},
		{"long name", text(1) + " name=" + text(2), "name=: a text of 44 characters is not a name: write at most 40 letters, digits and - _ . : @"},
		{"no address", text(1) + " from=10.0.0.0/8,web-1", `from=: "web-1" is not an address or a prefix: write them as 10.0.0.1 or fd00::/8, with commas and no spaces between`},
		{"end of list", text(1) + " from=10.0.0.0/8,", `from=: "" is not an address or a prefix: write them as 10.0.0.1 or fd00::/8, with commas and no spaces between`},
		{"zone", text(1) + " from=fe80::1%eth0", `from=: "fe80::1%eth0" is not an address or a prefix: write them as 10.0.0.1 or fd00::/8, with commas and no spaces between`},
		{"bits", text(1) + " from=10.0.0.1/8", `from=: "10.0.0.1/8" has bits beyond the prefix: write 10.0.0.0/8`},
		{"mapped", text(1) + " from=::ffff:10.0.0.1", `from=: "::ffff:10.0.0.1" has an IPv4 address in IPv6 form: write it as 10.0.0.0/8`},
		{"service", text(1) + " services=http", `services=: "http" is not a connection qualifier: write numbers and ranges as 7,100-199,0x4d`},
		{"half a range", text(1) + " services=7-", `services=: "7-" is not a connection qualifier: write numbers and ranges as 7,100-199,0x4d`},
		{"large service", text(1) + " services=18446744073709551616", `services=: "18446744073709551616" is not a connection qualifier: write numbers and ranges as 7,100-199,0x4d`},
		{"empty range", text(1) + " services=9-7", `services=: "9-7" is empty: write 7-9`},
		{"memory", text(1) + " memory=all", `memory=: "all" is not an access: write none, read or write`},
		{"time", text(1) + " expires=tomorrow", `expires=: "tomorrow" is not a time: write a date as 2027-01-31, or a time as 2027-01-31T18:00:00Z`},
		{"zero time", text(1) + " expires=0001-01-01", `expires=: "0001-01-01" is not a time: write a date as 2027-01-31, or a time as 2027-01-31T18:00:00Z`},
		{"no connections", text(1) + " connections=0", `connections=: "0" is not a number from 1 to 2147483647`},
		{"many", text(1) + " half-open=2147483648", `half-open=: "2147483648" is not a number from 1 to 2147483647`},
		{"negative", text(1) + " rate=-1", `rate=: "-1" is not a number from 1 to 2147483647`},
		{"no bytes", text(1) + " bytes=0", `bytes=: "0" is not a size: write it as 4096, 64K or 1GiB`},
		{"few bytes", text(1) + " bytes=8191", `bytes=: "8191" is less than one connection needs, and permits none: write 8K or more`},
		{"private key", text(0x81), begins + errPrivate.Error()},
		{"unit", text(1) + " bytes=1KG", `bytes=: "1KG" is not a size: write it as 4096, 64K or 1GiB`},
		{"many bytes", text(1) + " bytes=8589934592G", `bytes=: "8589934592G" is not a size: write it as 4096, 64K or 1GiB`},
		{"same key", text(1) + "\n" + text(1), "the peer's key is in the file already: remove one of the lines"},
		{"same secret", "psk:" + text(1) + "\npsk:" + text(1), "the peer's key is in the file already: remove one of the lines"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			line := "2:"
			if strings.Contains(tt.text, "\n") {
				line = "3:"
			}
			want := "peers:" + line + " " + tt.want
			if p, err := parsePeers("peers", []byte("# peers\n"+tt.text)); err == nil || err.Error() != want || p != nil {
				t.Errorf("got %v, %v\nwant %s", p, err, want)
			}
		})
	}
}

// TestNoKeyInErrors: an error quotes no key, nor the larger part of one, in the place of something else.
func TestNoKeyInErrors(t *testing.T) {
	whole, part := text(7), strings.TrimRight(text(7), "=")[:36]
	for _, s := range []string{whole, part, "psk:" + part} {
		for _, line := range []string{text(1) + " services=" + s, text(1) + " from=" + s, text(1) + " " + s, text(1) + " " + s + "=7", "x" + s} {
			if _, err := parsePeers("peers", []byte(line)); err == nil || strings.Contains(err.Error(), part[:20]) {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if got, want := Redact("open "+whole+": no such file"), "open (a key): no such file"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if name := "/var/lib/datxdp/hosts/server/keys/current/datxdp.key"; Redact(name) != name {
		t.Errorf("%s is hidden: %s", name, Redact(name))
	}
}

// TestUnits: sizes are multiples of 1024.
func TestUnits(t *testing.T) {
	for text, want := range map[string]int64{"8192": 8192, "8K": 8192, "9KiB": 9216, "3M": 3 << 20, "3MiB": 3 << 20, "4G": 4 << 30, "8589934591GiB": 8589934591 << 30} {
		var p Peer
		if err := p.parseBytes(text); err != nil || p.limits.Bytes != want {
			t.Errorf("%s: got %d, %v, want %d", text, p.limits.Bytes, err, want)
		}
	}
}

// TestPermit: each refusal has its verdict, and the first that applies decides.
func TestPermit(t *testing.T) {
	noon := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	bound := text(1) + " from=10.1.0.0/16,fe80::/10 services=7,100-199 expires=2027-01-31T12:00:00Z connections=5"
	tests := []struct {
		name, line, from string
		service          uint64
		now              time.Time
		want             Verdict
	}{
		{"permitted", bound, "10.1.2.3", 7, noon.Add(-1), Permitted},
		{"last of a range", bound, "10.1.2.3", 199, noon.Add(-1), Permitted},
		{"mapped address", bound, "::ffff:10.1.2.3", 7, noon.Add(-1), Permitted},
		{"address with a zone", bound, "fe80::1%eth0", 7, noon.Add(-1), Permitted},
		{"expired", bound, "10.1.2.3", 7, noon, Expired},
		{"expired and all else", bound, "10.2.0.0", 8, noon, Expired},
		{"address", bound, "10.2.0.0", 7, noon.Add(-1), WrongAddress},
		{"address and service", bound, "10.2.0.0", 8, noon.Add(-1), WrongAddress},
		{"service", bound, "10.1.2.3", 200, noon.Add(-1), WrongService},
		{"unbound", text(1), "192.0.2.1", 1 << 63, noon, Permitted},
		{"services without addresses", text(1) + " services=0-1", "192.0.2.1", 2, noon, WrongService},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy(t, tt.line).Find(peerID(1)).Permit(netip.MustParseAddr(tt.from), tt.service, tt.now); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	var nobody *Peer
	if got := nobody.Permit(netip.Addr{}, 7, noon); got != Unknown || nobody.String() != "" {
		t.Errorf("no peer: got %v", got)
	}
}

// TestVerdicts: each verdict has a word of its own.
func TestVerdicts(t *testing.T) {
	seen := map[string]bool{"": true}
	for v := range Verdicts {
		if seen[v.String()] {
			t.Errorf("verdict %d is %q", v, v)
		}
		seen[v.String()] = true
	}
}

// TestKeysOfOneHost: lines with one name are keys of one host, and the first line is the one to connect with.
func TestKeysOfOneHost(t *testing.T) {
	p := policy(t, text(1)+" name=web from=10.0.0.1\n"+text(2)+" name=web from=10.0.0.1\n"+text(3)+" name=db from=10.0.0.2\n"+text(4)+" from=10.0.0.3\n"+text(5)+" from=10.0.0.3\n")
	if got := p.FindName("web"); got == nil || got.ID() != peerID(1) {
		t.Errorf("the name is that of %v", got)
	}
	if got, n := p.FindAddress(netip.MustParseAddr("10.0.0.1")); got == nil || got.ID() != peerID(1) {
		t.Errorf("the address is that of %v, %d lines", got, n)
	}
	if got, n := p.FindAddress(netip.MustParseAddr("10.0.0.3")); got != nil || n != 2 {
		t.Errorf("two hosts without a name have the address: got %v, %d lines", got, n)
	}
	if p.Find(peerID(2)) == nil {
		t.Error("the second key of the host is unknown")
	}
}

// TestNextExpiry: the first time at which the time of a peer is over, of those to come.
func TestNextExpiry(t *testing.T) {
	p := policy(t, text(1)+" expires=2027-02-01\n"+text(2)+"\n"+text(3)+" expires=2027-01-01\n"+text(4)+" expires=2027-03-01\n")
	day := func(month time.Month) time.Time { return time.Date(2027, month, 1, 0, 0, 0, 0, time.UTC) }
	for now, want := range map[time.Time]time.Time{
		day(1).Add(-1): day(1), day(1): day(2), day(2).Add(time.Hour): day(3), day(3): {},
	} {
		if got := p.NextExpiry(now); !got.Equal(want) {
			t.Errorf("after %v: got %v, want %v", now, got, want)
		}
	}
}

// TestFindAddress: an address belongs to the line that names it. A network that contains it, and a line without from=, say
// nothing about it.
func TestFindAddress(t *testing.T) {
	p := policy(t, text(1)+" name=net from=10.0.0.0/8\n"+text(2)+" name=host from=192.0.2.1,10.1.2.3\n"+
		text(3)+" name=one from=10.9.0.1,10.8.0.1/32\n"+text(4)+" name=other from=10.9.0.1\n"+
		text(5)+" name=six from=fd00::/64,fd00::7\n"+text(6)+" name=any\n")
	for _, tc := range []struct {
		address, want string
		n             int
	}{
		{"10.1.2.3", "host", 1}, {"::ffff:10.1.2.3", "host", 1}, {"10.8.0.1", "one", 1}, {"fd00::7%eth0", "six", 1},
		{"10.9.0.1", "", 2}, {"10.200.0.1", "", 0}, {"198.51.100.1", "", 0}, {"fd00::8", "", 0},
	} {
		name := ""
		peer, n := p.FindAddress(netip.MustParseAddr(tc.address))
		if peer != nil {
			name = peer.String()
		}
		if name != tc.want || n != tc.n {
			t.Errorf("%s: got %q, %d lines; want %q, %d", tc.address, name, n, tc.want, tc.n)
		}
	}
}
