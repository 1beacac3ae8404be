//go:build !race

package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// Attack: forged ICMP port unreachable messages, in which only the verification tag is wrong. However many arrive, they
// must break no connection: neither an idle one, nor a busy one, nor one whose peer is stopped for 5 s. They must not
// make the engine send any packet.
func TestAttackForgedUnreachable(t *testing.T) {
	for _, tc := range []struct {
		name    string
		loss    float64
		every   time.Duration
		span    time.Duration
		busy    bool
		stopped bool
	}{
		{"idle, slow", 0, 30 * time.Millisecond, 2 * time.Second, false, false},
		{"idle, fast", 0, 10 * time.Microsecond, 2 * time.Second, false, false},
		{"busy, fast", 0, 10 * time.Microsecond, 2 * time.Second, true, false},
		{"busy, fast, lossy", 0.1, 10 * time.Microsecond, 2 * time.Second, true, false},
		{"idle, stopped", 0, 20 * time.Microsecond, 5 * time.Second, false, true},
		{"busy, stopped, slow", 0, 30 * time.Millisecond, 5 * time.Second, true, true},
		{"busy, stopped, fast", 0, 20 * time.Microsecond, 5 * time.Second, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const conns = 20
			w := newWorldOf(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: true, Loss: tc.loss, Seed: 9}, Limits{KeepAlive: time.Minute}, 2)
			a, b := w.nodes[0], w.nodes[1]
			var all []*Conn
			for range conns {
				ca, cb := w.pair(plain)
				all = append(all, ca, cb)
			}
			src, dst := a.memory(64), b.memory(64)
			w.exactly(time.Second)
			acks := a.eng.stats.AcksSent
			b.down = tc.stopped
			i := uint32(0)
			for end := w.net.Now() + int64(tc.span); w.net.Now() < end; i++ {
				a.link.Refuse(forge(all[2*(i%conns)], 0, i/conns))
				if c := all[2*(i%3)]; tc.busy && a.request.Len() < 100 && c.sq.empty() {
					a.post(c, c.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
				}
				w.exactly(tc.every)
			}
			b.down = false
			if n := a.eng.stats.AcksSent - acks; n > 0 && !tc.busy {
				t.Errorf("%d packets in answer to %d reports", n, i)
			}
			w.run(2 * time.Second)
			for i, c := range all {
				if c.State() != Established || c.challenge.begunAt != 0 {
					t.Fatalf("connection %d is %v, %+v", i/2, c.State(), c.challenge)
				}
			}
			if s := a.eng.stats; s.Unreachable == 0 || s.UnreachableIgnored != s.Unreachable {
				t.Errorf("%d of %d reports ignored", s.UnreachableIgnored, s.Unreachable)
			}
			if a.request.Len() == 0 && tc.busy {
				t.Error("no write completed")
			}
		})
	}
}

// Attack 27: the connection table has 65,000 free slots, because it had many connections before. A search for
// connections to a closed port must pass over these slots in few Polls, because the engine polls without a pause until
// the search has ended.
func TestAttackReportsAfterManyConnections(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: true}, 2)
	a := w.nodes[0]
	ca, _ := w.pair(plain)
	a.eng.table.slots = append(a.eng.table.slots, make([]slotEntry, 65_000)...)
	w.exactly(time.Second)
	r := &a.eng.portReports
	r.noteClosed(r.destination(ca.path), 1, Time(w.net.Now()), len(a.eng.table.slots))
	polls := 0
	for ; r.next(0) == 0; polls++ {
		a.eng.Poll(Time(w.net.Now()))
	}
	if polls < 2 || polls > 200 {
		t.Errorf("the search took %d Polls", polls)
	}
}

// Thousands of connections to a killed process must end within seconds, although the host of the process sends only a
// burst of six ICMP messages and then one per second. If the host has used up its burst before, it sends no ICMP
// message for some time, and the connections may end that much later.
func TestKilledProcessEndsManyConnections(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: true, RefuseSlowly: true}, 2)
	a, b := w.nodes[0], w.nodes[1]
	var all []*Conn
	for range 2000 {
		ca, _ := w.pair(plain)
		all = append(all, ca)
	}
	w.run(time.Second)
	src, dst := a.memory(64), b.memory(64)
	w.crash(b)
	a.connect = NewQueue(1<<12, nil, nil)
	for _, c := range all {
		c.completions.Connect = a.connect
	}
	a.post(all[0], all[0].PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	start := w.net.Now()
	w.until("the end", 4*time.Second, func() bool { return allClosed(all) })
	t.Logf("%d connections ended after %v, by %d reports", len(all), time.Duration(w.net.Now()-start), a.eng.stats.Unreachable)
}
