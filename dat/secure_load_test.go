package dat

import (
	"sync"
	"testing"
	"time"
)

// eachSecureLink runs a test over links that need no privilege.
func eachSecureLink(t *testing.T, f func(t *testing.T, n network)) {
	t.Run("sim", func(t *testing.T) { f(t, newSim(t)) })
	t.Run("udp", func(t *testing.T) { f(t, newUDP(t)) })
}

// stall makes the worker of a host stop in the next handshake that it computes as a server, until the returned function is
// called.
func (h *host) stall() (stopped <-chan struct{}, goOn func()) {
	reached, gate := make(chan struct{}), make(chan struct{})
	var once, free sync.Once
	ok(h.t, h.ia.a.runHalted(func() error {
		h.ia.a.security.now = func() time.Time {
			once.Do(func() { close(reached) })
			<-gate
			return time.Now()
		}
		return nil
	}))
	return reached, func() { free.Do(func() { close(gate) }) }
}

// TestHandshakesDoNotHoldTheOwner: while the worker computes for as long as it likes, and more requests come than may wait
// for it, an established connection works. Later the requests arrive, because the requesters repeat them.
func TestHandshakesDoNotHoldTheOwner(t *testing.T) {
	eachSecureLink(t, func(t *testing.T, n network) {
		const flood = 100
		a, b, _ := secureHosts(t, n)
		x, y := a.point(nil), b.point(nil)
		joinAs(x, y, PublicKey{}, "bob")
		must(b.ia.CreatePSP(testQual+1, must(b.ia.CreateEVD(4*flood, nil, EVDCR))(t), PSPConsumer))(t)
		stopped, goOn := b.stall()
		defer goOn()
		for range flood {
			ok(t, a.point(nil).ConnectWith(b.addr, testQual+1, ConnectConfig{Timeout: patience, PeerName: "bob"}))
		}
		select {
		case <-stopped:
		case <-time.After(patience):
			t.Fatal("no handshake came")
		}
		eventually(t, "a request that found no place", func() bool { return must(b.ia.Stats())(t).HandshakesDenied[DeniedBusy] > 0 })
		for range 10 {
			proves(x, y)
			proves(y, x)
		}
		goOn()
		eventually(t, "the arrival of all requests", func() bool {
			n := 0
			for e := range b.ia.evds {
				if e.flags&EVDCR != 0 {
					n += e.Len()
				}
			}
			return n == flood
		})
		proves(x, y)
	})
}

// TestCloseDuringHandshakes: adapters close while handshakes wait for both workers. TestMain checks that nothing is left.
func TestCloseDuringHandshakes(t *testing.T) {
	eachSecureLink(t, func(t *testing.T, n network) {
		for range 5 {
			a, b, _ := secureHosts(t, n)
			stopped, goOn := b.stall()
			for range 20 {
				a.point(nil).dialAs(b, patience, PublicKey{}, "bob")
			}
			<-stopped
			var closing sync.WaitGroup
			for _, h := range []*host{a, b} {
				closing.Go(func() { ok(t, h.ia.Close()) })
			}
			goOn()
			closing.Wait()
		}
	})
}
