package wire

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// A process that is killed is noticed within 100 ms by every connection to it, idle ones and those with data
// outstanding, since its host answers for it; the other connections of the engine notice nothing.
func TestKilledProcessIsNoticed(t *testing.T) {
	for _, loss := range []float64{0, 0.1} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: true, Loss: loss, Seed: 9}, 3)
			a, b := w.nodes[0], w.nodes[1]
			var killed []*Conn
			var dst memory
			for range 50 {
				ca, _ := w.pair(plain)
				killed = append(killed, ca)
			}
			w.nodes[1] = w.nodes[2]
			other, _ := w.pair(plain)
			w.nodes[1] = b
			src := a.memory(4000)
			dst = b.memory(4000)
			for _, ca := range killed[:25] {
				a.post(ca, ca.PostWrite(src.seg(0, 4000), 1, dst.at(0), 0))
			}
			a.eng.Poll(Time(w.net.Now()))
			w.crash(b)
			if loss == 0 { // nothing is outstanding: the next packet is what the host answers
				killed = killed[:25]
			} else {
				for _, ca := range killed[25:] {
					a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
				}
			}
			start := w.net.Now()
			w.until("the end of all connections", 100*time.Millisecond, func() bool {
				for _, ca := range killed {
					if ca.State() != Closed {
						return false
					}
				}
				return true
			})
			t.Logf("noticed after %v", time.Duration(w.net.Now()-start))
			for range killed {
				w.want(a.connect, KindBroken)
			}
			if other.State() != Established {
				t.Error("a connection to another host broke")
			}
		})
	}
}

// Idle connections to a killed process end as soon as one packet to it was answered by its host.
func TestKilledProcessEndsIdleConnections(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: true}, 2)
	a, b := w.nodes[0], w.nodes[1]
	idle, _ := w.pair(plain)
	busy, _ := w.pair(plain)
	src, dst := a.memory(64), b.memory(64)
	w.run(time.Second)
	w.crash(b)
	w.run(time.Second)
	if idle.State() != Established {
		t.Fatal("nothing was sent and the connection broke: the test tests nothing")
	}
	a.post(busy, busy.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	w.until("the end", 100*time.Millisecond, func() bool { return idle.State() == Closed && busy.State() == Closed })
}

// Attack: forged port unreachable, at any rate, breaks no connection whose peer answers, idle or busy, on a
// network that loses packets too, and costs a bounded number of packets.
func TestAttackForgedUnreachable(t *testing.T) {
	for _, tc := range []struct {
		name  string
		loss  float64
		every time.Duration
		busy  bool
	}{
		{"idle, slow", 0, 30 * time.Millisecond, false},
		{"idle, fast", 0, 10 * time.Microsecond, false},
		{"busy, fast", 0, 10 * time.Microsecond, true},
		{"busy, fast, lossy", 0.1, 10 * time.Microsecond, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const conns, span = 20, 2 * time.Second
			w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: true, Loss: tc.loss, Seed: 9}, 2)
			a, b := w.nodes[0], w.nodes[1]
			var all []*Conn
			for range conns {
				ca, cb := w.pair(plain)
				all = append(all, ca, cb)
			}
			src, dst := a.memory(64), b.memory(64)
			w.run(time.Second)
			acks := a.eng.stats.AcksSent
			for end := w.net.Now() + int64(span); w.net.Now() < end; {
				a.link.Refuse(b.addr)
				if tc.busy && a.request.Len() < 100 {
					a.post(all[0], all[0].PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
				}
				for next := w.net.Now() + int64(tc.every); w.net.Now() < next; {
					if !w.poll() {
						w.net.Advance(min(next, max(int64(w.next()), w.net.Now()+spin)))
						continue
					}
					w.net.Advance(w.net.Now() + spin)
				}
			}
			for i, c := range all {
				if c.State() != Established {
					t.Fatalf("connection %d is %v", i/2, c.State())
				}
			}
			sent := a.eng.stats.AcksSent - acks
			if most := uint64(conns * (1 + span/suspectRest)); !tc.busy && sent > most {
				t.Errorf("%d packets in %v for %d connections, want %d at most", sent, span, conns, most)
			}
			if sent == 0 || a.eng.stats.Unreachable == 0 {
				t.Error("nobody was asked: the test tests nothing")
			}
			if a.request.Len() == 0 && tc.busy {
				t.Error("no write completed")
			}
		})
	}
}

// One forged report about a peer that is silent for another reason breaks nothing.
func TestAttackOneForgedUnreachableOfSilentPeer(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(plain)
	src, dst := a.memory(64), b.memory(64)
	b.down = true
	a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	w.run(10 * time.Millisecond)
	a.link.Refuse(b.addr)
	w.run(5 * time.Second)
	b.down = false
	w.until("the write", time.Second, func() bool { return a.request.Len() == 1 })
	if ca.State() != Established {
		t.Errorf("the connection is %v", ca.State())
	}
}

// Reports of addresses without a connection cost no memory and hide none of a peer's.
func TestAttackForgedUnreachableOfStrangers(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: true}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(plain)
	r := randSource(4)
	for range 4 * maxRefusals { // as many as there is room for, before the true one
		a.link.Refuse(netipOf(r.Uint32()))
		w.poll()
		w.net.Advance(w.net.Now() + int64(time.Millisecond))
	}
	w.crash(b)
	start := w.net.Now()
	forge := func() {
		for range 4 {
			at := b.addr
			if a.link.Refuse(b.addr); r.IntN(2) == 0 {
				at = netipOf(r.Uint32())
			}
			a.link.Refuse(at)
		}
	}
	w.until("the end", 200*time.Millisecond, func() bool { forge(); return ca.State() == Closed })
	t.Logf("noticed after %v", time.Duration(w.net.Now()-start))
	w.run(5 * time.Second)
	w.poll()
	if a.eng.refusals.n != 0 {
		t.Errorf("%d addresses are still suspected", a.eng.refusals.n)
	}
}

func netipOf(n uint32) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(n >> 16), byte(n >> 8), byte(n)}), 17473)
}
