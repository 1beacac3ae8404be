package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// One end is stopped in one of the first exchanges of a connection, so its peer's first sample of the round trip contains
// the stop. Once the end continues, every exchange must be about as fast as on a connection without a stop.
func TestStopInFirstExchange(t *testing.T) {
	for _, size := range []int{100, 2400, 4000} {
		for _, lose := range []bool{false, true} {
			for _, stopAt := range []int{0, 1} {
				for _, stop := range []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second} {
					t.Run(fmt.Sprintf("%d bytes, loss %v, exchange %d, %v", size, lose, stopAt, stop), func(t *testing.T) {
						x := newExchanges(t, size)
						for range stopAt {
							x.exchange(0, false)
						}
						x.exchange(stop, lose)
						var sum time.Duration
						for i := range 100 {
							took := x.exchange(0, false)
							if sum += took; took > 10*time.Millisecond {
								t.Errorf("exchange %d after the stop takes %v", i, took)
							}
						}
						if sum > 20*time.Millisecond {
							t.Errorf("100 exchanges after the stop take %v, want 20ms", sum)
						}
					})
				}
			}
		}
	}
}

// exchanges is a connection on which node 0 sends requests, and node 1 answers with size bytes.
type exchanges struct {
	*world
	ca, cb *Conn
	ma, mb memory
	size   int
}

func newExchanges(t *testing.T, size int) *exchanges {
	w := newWorld(t, simlink.Config{Delay: 10 * time.Microsecond}, 2)
	x := &exchanges{world: w, size: size, ma: w.nodes[0].memory(8000), mb: w.nodes[1].memory(8000)}
	x.ca, x.cb = w.pair(plain)
	w.run(time.Millisecond)
	for range 32 {
		w.nodes[0].postRecv(x.ca, x.ma.seg(0, 8000), 0)
		w.nodes[1].postRecv(x.cb, x.mb.seg(0, 8000), 0)
	}
	w.run(time.Millisecond)
	return x
}

// exchange makes one exchange and returns how long it takes. If stop is not 0, node 0 is stopped for that time when the
// answer has left node 1, and exchange returns the time from the end of the stop. If lose is true, the network loses the
// first transmission of that answer.
func (x *exchanges) exchange(stop time.Duration, lose bool) time.Duration {
	a, b := x.nodes[0], x.nodes[1]
	var c Completion
	start := x.net.Now()
	a.post(x.ca, x.ca.PostSend(x.ma.seg(0, 100), 0, Suppress))
	x.until("the request", time.Second, func() bool { return b.recv.Pop(&c) })
	b.postRecv(x.cb, x.mb.seg(0, 8000), 0)
	b.post(x.cb, x.cb.PostSend(x.mb.seg(0, x.size), 0, Suppress))
	if lose {
		x.net.SetLoss(b.addr, a.addr, 1)
	}
	b.eng.Poll(Time(x.net.Now()))
	x.net.SetLoss(b.addr, a.addr, 0)
	if stop > 0 {
		a.down = true
		x.run(stop)
		a.down = false
		start = x.net.Now()
	}
	x.until("the answer", 10*time.Second, func() bool { return a.recv.Pop(&c) })
	a.postRecv(x.ca, x.ma.seg(0, 8000), 0)
	return time.Duration(x.net.Now() - start)
}
