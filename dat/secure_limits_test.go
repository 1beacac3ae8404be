package dat

import (
	"strings"
	"testing"
)

// limited opens a client, alice, and a server whose line for alice has the given words.
func limited(t *testing.T, n network, words string) (a, b *host, k *keyring) {
	t.Helper()
	k = newKeyring(t)
	a, b = newHost(t, n, 0, k.options("alice", k.line("bob", ""))), newHost(t, n, 1, k.options("bob", k.line("alice", words)))
	b.listen(testQual, 64)
	return a, b, k
}

// TestPeerConnections: a peer that has as many connections as its line allows is told so, and connects again when one of
// them has ended.
func TestPeerConnections(t *testing.T) {
	for _, words := range []string{"connections=2", "bytes=17K"} {
		eachSecureLink(t, func(t *testing.T, n network) {
			a, b, _ := limited(t, n, words)
			x, y := a.joins(b)
			a.joins(b)
			third := a.point(nil)
			third.dialAs(b, patience, PublicKey{}, "bob")
			if ev := third.expect(EventNonPeerRejected); ev.BreakReason != BreakResources {
				t.Errorf("%s: reason %v", words, ev.BreakReason)
			}
			if s := must(b.ia.Stats())(t); s.HandshakesDenied[DeniedLimit] != 1 {
				t.Errorf("%s: denied %v", words, s.HandshakesDenied)
			}
			ok(t, x.Disconnect(CloseGraceful))
			x.expect(EventDisconnected)
			y.expect(EventDisconnected)
			a.joins(b)
		})
	}
}

// TestPeerHalfOpen: a request beyond half-open= or rate= waits, because its requester repeats it, and then arrives.
func TestPeerHalfOpen(t *testing.T) {
	eachSecureLink(t, func(t *testing.T, n network) {
		a, b, _ := limited(t, n, "half-open=1")
		x, second := a.point(nil), a.point(nil)
		x.dialAs(b, patience, PublicKey{}, "bob")
		request := b.request(t)
		second.dialAs(b, patience, PublicKey{}, "bob")
		eventually(t, "a request beyond the limit", func() bool { return must(b.ia.Stats())(t).HandshakesDenied[DeniedLimit] > 0 })
		if b.cr.Len() != 0 {
			t.Error("two requests are half-open")
		}
		ok(t, request.Accept(b.point(nil).EP, nil))
		x.expect(EventEstablished)
		ok(t, b.request(t).Accept(b.point(nil).EP, nil))
		second.expect(EventEstablished)
	})
	eachSecureLink(t, func(t *testing.T, n network) {
		a, b, _ := limited(t, n, "rate=2")
		for range 4 {
			a.joins(b)
		}
		if s := must(b.ia.Stats())(t); s.HandshakesDenied[DeniedLimit] == 0 {
			t.Error("no request had to wait")
		}
	})
}

// TestPeerMemory: the word memory= bounds what a peer may do with memory that has all privileges, also after a reload.
func TestPeerMemory(t *testing.T) {
	eachSecureLink(t, func(t *testing.T, n network) {
		a, b, k := limited(t, n, "memory=read")
		try := func(what string, post func(x, y *point) error, op DTO, want DTOStatus) {
			t.Helper()
			x, y := a.joins(b)
			ok(t, post(x, y))
			length := 0
			if want == DTOSuccess {
				length = 8
			}
			x.done(x.request, 1, op, want, length)
			if want != DTOSuccess {
				if ev := y.expect(EventBroken); ev.BreakReason != BreakAccess {
					t.Errorf("%s: the server sees %v", what, ev.BreakReason)
				}
			}
		}
		read := func(x, y *point) error { return x.PostRDMARead(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0) }
		write := func(x, y *point) error { return x.PostRDMAWrite(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0) }
		try("read", read, DTORDMARead, DTOSuccess)
		try("write", write, DTORDMAWrite, DTORemoteAccess)
		x, y := a.joins(b)
		k.rewrite("bob.peers", k.line("alice", "memory=none"))
		ok(t, b.ia.ReloadSecurity())
		ok(t, read(x, y))
		x.done(x.request, 1, DTORDMARead, DTORemoteAccess, 0)
		y.expect(EventBroken)
		k.rewrite("bob.peers", k.line("alice", ""))
		ok(t, b.ia.ReloadSecurity())
		try("write with all rights", write, DTORDMAWrite, DTOSuccess)
		wrong := func(x, y *point) error {
			return x.PostRDMAWrite(x.seg(0, 8), 1, RMRTriplet{Context: y.lmr.RMRContext() ^ 1, Address: y.lmr.Address(), Length: 8}, 0)
		}
		try("write with a wrong key", wrong, DTORDMAWrite, DTORemoteAccess)
		if s := must(b.ia.Stats())(t); s.AccessDenied != 2 || s.ProtectionErrors != 3 {
			t.Errorf("%d accesses denied by memory=, want 2; %d protection errors, want 3", s.AccessDenied, s.ProtectionErrors)
		}
	})
}

// TestExpiredServer: a host does not connect to a peer whose time is over, and says why.
func TestExpiredServer(t *testing.T) {
	eachSecureLink(t, func(t *testing.T, n network) {
		k := newKeyring(t)
		b := newHost(t, n, 1, k.options("bob", k.line("alice", "")))
		a := newHost(t, n, 0, k.options("alice", k.line("bob", "expires=2020-01-01 from="+b.addr.String())))
		for what, c := range map[string]ConnectConfig{
			"by address": {Timeout: patience}, "by name": {Timeout: patience, PeerName: "bob"}, "by key": {Timeout: patience, PeerKey: k.publicOf("bob")},
		} {
			err := a.point(nil).ConnectWith(b.addr, testQual, c)
			if wants(t, what, err, ErrInvalidParameter); !strings.Contains(err.Error(), `the time of the peer "bob" is over`) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestGuessesOfAnIdentity: a peer that uses many wrong remote keys has to wait, and another one at its address does not.
func TestGuessesOfAnIdentity(t *testing.T) {
	n := newSim(t)
	a, b, _ := limited(t, n, "")
	var pairs [80][2]*point // connected before the first guess, because guesses are forgiven with time
	for i := range pairs {
		pairs[i][0], pairs[i][1] = a.joins(b)
	}
	for _, p := range pairs {
		x := p[0]
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, RMRTriplet{Context: 12345, Address: 0, Length: 8}, 0))
	}
	for _, p := range pairs {
		p[0].done(p[0].request, 1, DTORDMAWrite, DTORemoteAccess, 0)
		p[1].expect(EventBroken)
	}
	x := a.point(nil)
	x.dialAs(b, refusedAfter, PublicKey{}, "bob")
	x.expect(EventTimedOut)
	if s := must(b.ia.Stats())(t); s.HandshakesDenied[DeniedLimit] == 0 {
		t.Error("no request had to wait")
	}
}
