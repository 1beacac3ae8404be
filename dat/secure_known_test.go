package dat

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trusting returns the options of a client, alice, that trusts servers on first use, and the name of the file for them.
func trusting(k *keyring, peers string) (o Options, file string) {
	o = k.options("alice", peers)
	o.Security.KnownFile = filepath.Join(k.dir, "known")
	return o, o.Security.KnownFile
}

// announcing returns the options of a server that knows alice, and tells its key.
func announcing(k *keyring, host string) Options {
	o := k.options(host, k.line("alice", ""))
	o.Security.Announce = true
	return o
}

// TestTrustOnFirstUse: a client asks an unknown server for its key, connects, and remembers it. Afterwards it expects this
// key: the server does not need to tell it, and one with another key at the address is refused.
func TestTrustOnFirstUse(t *testing.T) {
	k := newKeyring(t)
	client, file := trusting(k, k.line("carol", ""))
	var log syncBuffer
	client.Logger = slog.New(slog.NewTextHandler(&log, nil))
	var want string
	for _, server := range []struct {
		options Options
		known   bool
	}{{announcing(k, "bob"), false}, {k.options("bob", k.line("alice", "")), true}} {
		n := newSim(t)
		a, b := newHost(t, n, 0, client), newHost(t, n, 1, server.options)
		b.listen(testQual, 64)
		for range 2 {
			x, y := a.point(nil), b.point(nil)
			joinAs(x, y, PublicKey{}, "")
			proves(x, y)
			if p := must(x.Query())(t); p.PeerKey != k.publicOf("bob") || p.OwnKey != k.publicOf("alice") || p.PeerName != "" {
				t.Errorf("the client sees %q %v, and itself as %v", p.PeerName, p.PeerKey, p.OwnKey)
			}
		}
		want = fmt.Sprintf("\n%v %v\n", b.addr, k.publicOf("bob"))
		if got := string(must(os.ReadFile(file))(t)); got != want {
			t.Errorf("the file has %q, want %q", got, want)
		}
	}
	if line := `level=WARN msg="dat: a server is trusted on first use" ia=link peer=`; strings.Count(log.await(line), line) != 1 {
		t.Errorf("the log has\n%s", log.String())
	}
	n := newSim(t)
	a, b := newHost(t, n, 0, client), newHost(t, n, 1, announcing(k, "mallory"))
	b.listen(testQual, 64)
	x := a.point(nil)
	x.dialAs(b, refusedAfter, PublicKey{}, "")
	if ev := x.expect(EventTimedOut); ev.BreakReason != BreakHandshake {
		t.Errorf("another server at the address: %v", ev.BreakReason)
	}
	if got := string(must(os.ReadFile(file))(t)); got != want {
		t.Errorf("the file has %q, want %q", got, want)
	}
}

// TestNoTrustOnFirstUse: a server that does not tell its key, one that cannot be remembered, and one whose key has a line
// with other addresses in the file of peers are not trusted, and not remembered.
func TestNoTrustOnFirstUse(t *testing.T) {
	for name, tc := range map[string]struct {
		server func(*keyring) Options
		peers  func(*keyring) string
	}{
		"not announced": {func(k *keyring) Options { return k.options("bob", k.line("alice", "")) }, func(*keyring) string { return "" }},
		"listed":        {func(k *keyring) Options { return announcing(k, "bob") }, func(k *keyring) string { return k.line("bob", "from=192.0.2.1 memory=none") }},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeyring(t)
			client, file := trusting(k, tc.peers(k))
			n := newSim(t)
			a, b := newHost(t, n, 0, client), newHost(t, n, 1, tc.server(k))
			b.listen(testQual, 64)
			x := a.point(nil)
			x.dialAs(b, refusedAfter, PublicKey{}, "")
			if ev := x.expect(EventTimedOut); ev.BreakReason != BreakHandshake {
				t.Errorf("reason %v", ev.BreakReason)
			}
			if got := string(must(os.ReadFile(file))(t)); got != "" {
				t.Errorf("the file has %q", got)
			}
		})
	}
	k := newKeyring(t)
	client, file := trusting(k, "")
	n := newSim(t)
	a, b := newHost(t, n, 0, client), newHost(t, n, 1, announcing(k, "bob"))
	ok(t, os.WriteFile(file, []byte("x"), 0o600))
	wants(t, "dial with a file that is damaged", a.point(nil).ConnectWith(b.addr, testQual, ConnectConfig{Timeout: patience}), ErrInvalidParameter)
	_, err := opens(t, Security{Insecure: true, KnownFile: file})
	wants(t, "known= and insecure", err, ErrInvalidParameter)
	_, err = opens(t, Security{KnownFile: file})
	wants(t, "known= without a key", err, ErrInvalidParameter)
	_, err = opens(t, Security{Announce: true})
	wants(t, "announce without a key", err, ErrInvalidParameter)
}
