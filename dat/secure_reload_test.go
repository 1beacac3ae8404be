package dat

import (
	"os"
	"strings"
	"testing"
	"time"
)

// rewrite changes a file at once, as an editor or mv does.
func (k *keyring) rewrite(name, text string) {
	k.t.Helper()
	ok(k.t, os.Rename(k.file(name+".new", text), k.file(name, "")))
}

// trio opens a server, bob, and two clients that it knows, alice and carol.
func trio(t *testing.T, n network) (alice, bob, carol *host, k *keyring) {
	t.Helper()
	k = newKeyring(t)
	alice, carol = newHost(t, n, 0, k.options("alice", k.line("bob", ""))), newHost(t, n, 2, k.options("carol", k.line("bob", "")))
	bob = newHost(t, n, 1, k.options("bob", k.line("alice", "")+k.line("carol", "")))
	bob.listen(testQual, 64)
	return alice, bob, carol, k
}

// joins connects a point of a client to one of the server bob.
func (h *host) joins(bob *host) (x, y *point) {
	h.t.Helper()
	x, y = h.point(nil), bob.point(nil)
	joinAs(x, y, PublicKey{}, "bob")
	return x, y
}

// TestReloadSecurity: a peer that is removed from the file loses its connections and requests, and nobody else does. Both
// ends see why.
func TestReloadSecurity(t *testing.T) {
	eachSecureLink(t, func(t *testing.T, n network) {
		alice, bob, carol, k := trio(t, n)
		x, y := alice.joins(bob)
		z, w := carol.joins(bob)
		pending := alice.point(nil)
		pending.dialAs(bob, patience, PublicKey{}, "bob")
		request := bob.request(t)
		k.rewrite("bob.peers", k.line("carol", ""))
		ok(t, bob.ia.ReloadSecurity())
		if ev := y.expect(EventBroken); ev.BreakReason != BreakDenied {
			t.Errorf("the server sees %v", ev.BreakReason)
		}
		if ev := x.expect(EventBroken); ev.BreakReason != BreakDenied|BreakByPeer {
			t.Errorf("the client sees %v", ev.BreakReason)
		}
		wants(t, "accept a request of a peer that was removed", request.Accept(bob.point(nil).EP, nil), ErrInvalidHandle)
		ok(t, pending.EP.Free()) // it would ask again, and take the place of a later request
		proves(z, w)
		if s := must(bob.ia.Stats())(t); s.Revoked != 2 {
			t.Errorf("%d revocations, want 2", s.Revoked)
		}
		again := alice.point(nil)
		again.dialAs(bob, refusedAfter, PublicKey{}, "bob")
		again.expect(EventTimedOut)
		proves(carol.joins(bob)) // the last request of alice has been refused when a later one is accepted
		k.rewrite("bob.peers", k.line("carol", "")+k.line("alice", ""))
		ok(t, bob.ia.ReloadSecurity())
		x, y = alice.joins(bob)
		proves(x, y)
	})
}

// TestRotateKeys: server and client get new keys, and no connection is lost: neither those of before nor new ones.
func TestRotateKeys(t *testing.T) {
	eachSecureLink(t, func(t *testing.T, n network) {
		alice, bob, _, k := trio(t, n)
		text := func(host string) string { return string(must(os.ReadFile(k.key(host)))(t)) }
		line := func(host, name string) string {
			return strings.Replace(k.line(host, ""), "name="+host, "name="+name, 1)
		}
		x, y := alice.joins(bob)
		for _, step := range []struct{ what, aliceKeys, alicePeers, bobKeys, bobPeers string }{
			{"both accept the new keys", text("alice"), line("bob", "bob") + line("bob2", "bob"), text("bob") + text("bob2"), line("alice", "alice") + line("alice2", "alice")},
			{"both use the new keys", text("alice2") + text("alice"), line("bob2", "bob") + line("bob", "bob"), text("bob2") + text("bob"), line("alice", "alice") + line("alice2", "alice")},
			{"the server has its new key alone", text("alice2"), line("bob2", "bob") + line("bob", "bob"), text("bob2"), line("alice", "alice") + line("alice2", "alice")},
		} {
			k.rewrite("bob.key", step.bobKeys)
			k.rewrite("bob.peers", step.bobPeers)
			ok(t, bob.ia.ReloadSecurity())
			k.rewrite("alice.key", step.aliceKeys)
			k.rewrite("alice.peers", step.alicePeers)
			ok(t, alice.ia.ReloadSecurity())
			proves(x, y)
			x2, y2 := alice.joins(bob)
			proves(x2, y2)
			t.Log(step.what)
		}
		x2, y2 := alice.joins(bob)
		if p := must(y2.Query())(t); p.PeerKey != k.publicOf("alice2") || p.PeerName != "alice" {
			t.Errorf("the client has the key of %q %v", p.PeerName, p.PeerKey)
		}
		k.rewrite("bob.peers", line("alice2", "alice"))
		ok(t, bob.ia.ReloadSecurity()) // the old key is revoked
		y.expect(EventBroken)
		x.expect(EventBroken)
		proves(x2, y2)
	})
}

// TestReloadOfTheActiveSide: a connection to a server that is removed from the file of the client ends too, and so does one
// by key of a peer whose time is over. A connection by key to a server that never had a line stays.
func TestReloadOfTheActiveSide(t *testing.T) {
	eachSecureLink(t, func(t *testing.T, n network) {
		alice, bob, carol, k := trio(t, n)
		x, y := alice.joins(bob)
		k.rewrite("alice.peers", k.line("carol", ""))
		ok(t, alice.ia.ReloadSecurity())
		if ev := x.expect(EventBroken); ev.BreakReason != BreakDenied {
			t.Errorf("the client sees %v", ev.BreakReason)
		}
		y.expect(EventBroken)
		carol.joins(bob)
		byKey, z := alice.point(nil), bob.point(nil)
		joinAs(byKey, z, k.publicOf("bob"), "")
		k.rewrite("alice.peers", "")
		ok(t, alice.ia.ReloadSecurity())
		proves(byKey, z)
	})
}

// TestFailedReload: files that are wrong change nothing, and the error says what is wrong.
func TestFailedReload(t *testing.T) {
	alice, bob, _, k := trio(t, newSim(t))
	x, y := alice.joins(bob)
	k.rewrite("bob.peers", "nonsense\n")
	err := bob.ia.ReloadSecurity()
	wants(t, "a wrong file", err, ErrInvalidParameter)
	if !strings.Contains(err.Error(), "bob.peers:1: ") {
		t.Errorf("the error is %q", err)
	}
	proves(x, y)
	alice.joins(bob)
	plain := newHost(t, newSim(t), 0, Options{})
	wants(t, "plaintext mode", plain.ia.ReloadSecurity(), ErrInvalidState)
	closed := newHost(t, newSim(t), 0, Options{})
	ok(t, closed.ia.Close())
	wants(t, "a closed IA", closed.ia.ReloadSecurity(), ErrInvalidHandle)
}

// TestFilesAreWatched: an adapter reads files that have changed by itself, and ends connections of peers whose time is
// over.
func TestFilesAreWatched(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{"removed": "", "expired": "expires=" + time.Now().Add(time.Second).UTC().Format(time.RFC3339)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alice, bob, carol, k := trio(t, newUDP(t))
			x, y := alice.joins(bob)
			z, w := carol.joins(bob)
			line := ""
			if words != "" {
				line = k.line("alice", words)
			}
			k.rewrite("bob.peers", k.line("carol", "")+line)
			if ev := y.expect(EventBroken); ev.BreakReason != BreakDenied {
				t.Errorf("the server sees %v", ev.BreakReason)
			}
			x.expect(EventBroken)
			proves(z, w)
		})
	}
}
