package dat

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/handshake"
	"github.com/datxdp/datxdp/internal/identity"
)

// refusedAfter is the timeout of attempts that get no answer.
const refusedAfter = 300 * time.Millisecond

// keyring makes key files and files of peers.
type keyring struct {
	t      testing.TB
	dir    string
	public map[string]PublicKey
}

func newKeyring(t testing.TB) *keyring {
	return &keyring{t, t.TempDir(), map[string]PublicKey{}}
}

// key makes the key file of a host, unless it exists, and returns its name.
func (k *keyring) key(host string) string {
	k.t.Helper()
	file := filepath.Join(k.dir, host+".key")
	if _, made := k.public[host]; !made {
		k.public[host] = PublicKey(must(identity.CreateKey(file))(k.t))
	}
	return file
}

// publicOf returns the public key of a host.
func (k *keyring) publicOf(host string) PublicKey {
	k.key(host)
	return k.public[host]
}

// file makes a file of peers, and returns its name.
func (k *keyring) file(name, text string) string {
	k.t.Helper()
	file := filepath.Join(k.dir, name)
	ok(k.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// line is the line of a host in a file of peers.
func (k *keyring) line(host, words string) string {
	return identity.Text(handshake.PublicKey(k.publicOf(host))) + " name=" + host + " " + words + "\n"
}

// options returns the options of host, whose file of peers has the given text.
func (k *keyring) options(host, peers string) Options {
	return Options{Security: Security{KeyFile: k.key(host), PeersFile: k.file(host+".peers", peers)}}
}

// secureHosts opens both sides in secure mode, under the names alice and bob. Each knows the other one.
func secureHosts(t testing.TB, n network) (a, b *host, k *keyring) {
	t.Helper()
	k = newKeyring(t)
	a = newHost(t, n, 0, k.options("alice", k.line("bob", "")))
	b = newHost(t, n, 1, k.options("bob", k.line("alice", "")))
	b.listen(testQual, 64)
	return a, b, k
}

// dialAs starts a connection to a peer with a key or a name.
func (p *point) dialAs(to *host, timeout time.Duration, key PublicKey, name string) {
	p.host.t.Helper()
	ok(p.host.t, p.ConnectWith(to.addr, testQual, ConnectConfig{Timeout: timeout, PeerKey: key, PeerName: name, PrivateData: []byte("hello")}))
}

// joinAs connects two points, of which x names its peer.
func joinAs(x, y *point, key PublicKey, name string) (request CRParam) {
	t := x.host.t
	t.Helper()
	x.peer, y.peer = y, x
	x.dialAs(y.host, patience, key, name)
	cr := y.host.request(t)
	request = must(cr.Query())(t)
	ok(t, cr.Accept(y.EP, []byte("welcome")))
	if ev := x.expect(EventEstablished); string(ev.PrivateData) != "welcome" {
		t.Errorf("private data %q", ev.PrivateData)
	}
	y.expect(EventEstablished)
	return request
}

// TestSecure: two hosts that know each other's keys connect, and each operation works. Each sees who the other one is.
func TestSecure(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b, k := secureHosts(t, n)
		for _, tc := range []struct {
			key  PublicKey
			name string
		}{{k.publicOf("bob"), ""}, {PublicKey{}, "bob"}} {
			x, y := a.point(nil), b.point(nil)
			request := joinAs(x, y, tc.key, tc.name)
			if string(request.PrivateData) != "hello" || request.PeerKey != k.publicOf("alice") || request.PeerName != "alice" {
				t.Errorf("the request is of %q %v: %q", request.PeerName, request.PeerKey, request.PrivateData)
			}
			px, py := must(x.Query())(t), must(y.Query())(t)
			if px.PeerKey != k.publicOf("bob") || px.PeerName != "bob" || py.PeerKey != k.publicOf("alice") || py.PeerName != "alice" {
				t.Errorf("the peers are %q %v and %q %v", px.PeerName, px.PeerKey, py.PeerName, py.PeerKey)
			}
			proves(x, y)
			proves(y, x)
		}
		if attr := must(a.ia.Query())(t); !attr.Secure {
			t.Error("the adapter does not say that it is secure")
		}
		for _, h := range []*host{a, b} {
			if s := must(h.ia.Stats())(t); s.Unopened+s.Forged+s.ProtocolErrors != 0 || s.HandshakesDenied != [NumDenials]uint64{} {
				t.Errorf("%+v", s.ProtocolStats)
			}
		}
	})
}

// TestSecureByAddress: without a key or a name, the file of peers says who has the address of the server.
func TestSecureByAddress(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		k := newKeyring(t)
		b := newHost(t, n, 1, k.options("bob", k.line("alice", "")))
		b.listen(testQual, 64)
		a := newHost(t, n, 0, k.options("alice", k.line("bob", "from="+b.addr.String())+k.line("carol", "from=192.0.2.1")))
		x, y := a.point(nil), b.point(nil)
		joinAs(x, y, PublicKey{}, "")
		proves(x, y)
		if p := must(x.Query())(t); p.PeerName != "bob" || p.PeerKey != k.publicOf("bob") {
			t.Errorf("the peer is %q %v", p.PeerName, p.PeerKey)
		}
		unknown := a.point(nil)
		wants(t, "an address that no line has", unknown.Connect(netip.MustParseAddr("192.0.2.2"), testQual, patience, nil), ErrInvalidParameter)
	})
}

// TestSecureShared: two hosts with a shared secret connect by the name of its line, and a second endpoint by DupConnect.
func TestSecureShared(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		k := newKeyring(t)
		ok(t, identity.CreateSecret(filepath.Join(k.dir, "secret")))
		text := string(must(os.ReadFile(filepath.Join(k.dir, "secret")))(t))
		line := text[:len(text)-1] + " name=us\n"
		a, b := newHost(t, n, 0, k.options("alice", line)), newHost(t, n, 1, k.options("bob", line))
		b.listen(testQual, 64)
		x, y := a.point(nil), b.point(nil)
		if request := joinAs(x, y, PublicKey{}, "us"); request.PeerName != "us" || request.PeerKey != (PublicKey{}) {
			t.Errorf("the request is of %q %v", request.PeerName, request.PeerKey)
		}
		proves(x, y)
		x2, y2 := a.point(nil), b.point(nil)
		ok(t, x2.DupConnect(x.EP, ConnectConfig{Timeout: patience}))
		ok(t, b.request(t).Accept(y2.EP, nil))
		x2.expect(EventEstablished)
		y2.expect(EventEstablished)
		proves(x2, y2)
	})
}

// TestSecureReject: the requester sees the answer of the consumer, which is authentic.
func TestSecureReject(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b, _ := secureHosts(t, n)
		x := a.point(nil)
		x.dialAs(b, patience, PublicKey{}, "bob")
		ok(t, b.request(t).Reject([]byte("no")))
		if ev := x.expect(EventPeerRejected); string(ev.PrivateData) != "no" {
			t.Errorf("private data %q", ev.PrivateData)
		}
	})
}

// TestSecureDenied: a server does not answer a requester that it does not know or that must not connect, and counts the
// reason. The requester gets a timeout that says what to check. A service that the requester may not reach seems not to exist.
func TestSecureDenied(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		for _, tc := range []struct {
			name, line, server string
			why                Denial
		}{
			{"wrong server key", "", "carol", DeniedKey},
			{"unknown requester", "carol", "bob", DeniedUnknown},
			{"expired", "expires=2020-01-01", "bob", DeniedExpired},
			{"wrong address", "from=192.0.2.0/24", "bob", DeniedAddress},
			{"wrong service", "services=1", "bob", DeniedService},
		} {
			t.Run(tc.name, func(t *testing.T) {
				k := newKeyring(t)
				line := k.line("alice", tc.line)
				if tc.line == "carol" {
					line = k.line("carol", "")
				}
				a, b := newHost(t, n, 0, k.options("alice", "")), newHost(t, n, 1, k.options("bob", line))
				b.listen(testQual, 64)
				x := a.point(nil)
				timeout, number, reason := refusedAfter, EventTimedOut, BreakHandshake
				if tc.why == DeniedService {
					timeout, number, reason = patience, EventNonPeerRejected, BreakNoListener
				}
				x.dialAs(b, timeout, k.publicOf(tc.server), "")
				if ev := x.expect(number); ev.BreakReason != reason {
					t.Errorf("reason %v, want %v", ev.BreakReason, reason)
				}
				if s := must(b.ia.Stats())(t); s.HandshakesDenied[tc.why] == 0 || s.Accepts != 0 || b.cr.Len() != 0 {
					t.Errorf("denied %v, %d accepts, %d requests", s.HandshakesDenied, s.Accepts, b.cr.Len())
				}
			})
		}
	})
}

// TestSecureAndPlaintext: a host in secure mode and a host in plaintext mode do not connect, and the reason says why.
func TestSecureAndPlaintext(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		k := newKeyring(t)
		secure, plain := newHost(t, n, 0, k.options("alice", "")), newHost(t, n, 1, Options{})
		secure.listen(testQual, 64)
		plain.listen(testQual, 64)
		x, y := secure.point(nil), plain.point(nil)
		x.dialAs(plain, refusedAfter, k.publicOf("bob"), "")
		if ev := x.expect(EventTimedOut); ev.BreakReason != BreakOption {
			t.Errorf("the secure host sees %v", ev.BreakReason)
		}
		y.dial(secure, nil)
		if ev := y.expect(EventNonPeerRejected); ev.BreakReason != BreakSecure {
			t.Errorf("the plaintext host sees %v", ev.BreakReason)
		}
		if n := secure.cr.Len() + plain.cr.Len(); n != 0 {
			t.Errorf("%d requests", n)
		}
		wants(t, "no peer", x.Connect(plain.addr, testQual, patience, nil), ErrInvalidState)
		wants(t, "no peer", secure.point(nil).Connect(plain.addr, testQual, patience, nil), ErrInvalidParameter)
		wants(t, "unknown name", secure.point(nil).ConnectWith(plain.addr, testQual, ConnectConfig{Timeout: patience, PeerName: "bob"}), ErrInvalidParameter)
		wants(t, "two peers", secure.point(nil).ConnectWith(plain.addr, testQual, ConnectConfig{Timeout: patience, PeerName: "bob", PeerKey: k.publicOf("bob")}), ErrInvalidParameter)
		wants(t, "a key in plaintext mode", plain.point(nil).ConnectWith(secure.addr, testQual, ConnectConfig{Timeout: patience, PeerKey: k.publicOf("bob")}), ErrInvalidParameter)
	})
}
