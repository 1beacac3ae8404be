package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// TestConnectToUnreachablePeer: a report that a Connect did not arrive ends the attempt after ListenGrace, with the reason
// that the report has. One report is enough, because routers limit their rate.
func TestConnectToUnreachablePeer(t *testing.T) {
	for why, want := range map[link.Refusal]BreakReason{
		link.RefusedHost: BreakNoHost, link.RefusedNet: BreakNoNet, link.RefusedPolicy: BreakProhibited,
	} {
		for _, at := range []time.Duration{time.Millisecond, 3 * time.Second} {
			w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond}, 2)
			a, b := w.nodes[0], w.nodes[1]
			b.down = true
			c := a.host.NewConn(plain)
			w.dial(a, b, c, nil)
			w.run(at)
			r := tryReport(c, Time(w.net.Now()))
			r.Why = why
			a.link.Refuse(r)
			w.until("the end", max(0, a.host.limits.ListenGrace-at)+200*time.Millisecond, func() bool { return c.State() == Closed })
			var end Completion
			if !a.connect.Pop(&end) || end.Kind != KindUnreachable || BreakReason(end.Data) != want {
				t.Errorf("report %v after %v: %+v, %v", why, at, end, BreakReason(end.Data))
			}
			if age := time.Duration(w.net.Now()); age < a.host.limits.ListenGrace {
				t.Errorf("the attempt ended after %v", age)
			}
		}
	}
}

// TestReportOfPathIsSoft: a report about the path ends neither an attempt that the peer answers within ListenGrace, nor a
// connection.
func TestReportOfPathIsSoft(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	b.down = true
	c := a.host.NewConn(plain)
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	w.dial(a, b, c, nil)
	w.run(time.Millisecond)
	r := tryReport(c, Time(w.net.Now()))
	r.Why = link.RefusedHost
	a.link.Refuse(r)
	w.run(time.Millisecond)
	b.down = false
	w.until("the request", time.Second, func() bool { return len(b.arrived) == 1 })
	w.accept(b, b.host.NewConn(plain), nil)
	w.until("establishment", time.Second, func() bool { return c.State() == Established })
	for range 100 {
		h := c.newHeader(proto.Data, c.sent.Nxt)
		h.TS = Time(w.net.Now()).Stamp()
		report := quoting(b.addr, &h)
		report.Why = link.RefusedNet
		a.link.Refuse(report)
		w.exactly(10 * time.Millisecond)
	}
	if c.State() != Established || a.eng.stats.Unreachable < 100 || a.eng.stats.UnreachableIgnored != 0 {
		t.Errorf("the connection is %v after %d reports, %d ignored", c.State(), a.eng.stats.Unreachable, a.eng.stats.UnreachableIgnored)
	}
}
