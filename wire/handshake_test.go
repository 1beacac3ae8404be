package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// A request must arrive once, however often Connect is repeated and whichever answers are lost.
func TestRejectOnce(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	for i := range 2*maxRejected + 3 {
		c := a.host.NewConn(plain)
		w.dial(a, b, c, nil)
		w.until("request", time.Second, func() bool { return len(b.arrived) == 1 })
		path, err := b.link.Resolve(b.arrived[0].From, 1)
		if err != nil {
			t.Fatal(err)
		}
		w.net.Partition(a.addr, b.addr, i%2 == 0)
		if err := b.eng.Reject(b.arrived[0], path, []byte("no")); err != nil {
			t.Fatal(err)
		}
		w.run(time.Millisecond)
		w.net.Partition(a.addr, b.addr, false)
		w.until("rejection", time.Second, func() bool { return c.State() == Closed })
		w.want(a.connect, KindPeerRejected)
		if got := string(c.PeerPrivate()); got != "no" {
			t.Errorf("reject carries %q", got)
		}
		if len(b.arrived) != 1 {
			t.Fatalf("%d requests of one", len(b.arrived))
		}
		b.arrived = b.arrived[:0]
		if b.eng.halfOpen.used != 0 || len(b.eng.requests) > maxRejected || b.link.Paths() > maxRejected {
			t.Fatalf("%d requests are open, %d remembered, %d paths", b.eng.halfOpen.used, len(b.eng.requests), b.link.Paths())
		}
	}
}
