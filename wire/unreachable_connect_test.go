package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// An attempt to connect to a port that no program uses must end with KindRefused and the reason BreakPort. It must end
// soon after ListenGrace (1 s), even if the host answers Connects with only one ICMP message per second. An attempt to
// connect to a silent host must end with KindTimedOut.
func TestConnectToClosedPort(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cfg   simlink.Config
		conns int
		want  Kind
		most  time.Duration
	}{
		{"one", simlink.Config{Refuse: true}, 1, KindRefused, 1200 * time.Millisecond},
		{"one report a second", simlink.Config{Refuse: true, RefuseSlowly: true}, 1, KindRefused, 2200 * time.Millisecond},
		{"many at once", simlink.Config{Refuse: true, RefuseSlowly: true}, 200, KindRefused, 2200 * time.Millisecond},
		{"lossy", simlink.Config{Refuse: true, Loss: 0.3, Seed: 5}, 1, KindRefused, 1500 * time.Millisecond},
		{"silent", simlink.Config{}, 1, KindTimedOut, 31 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.cfg.Delay = 20 * time.Microsecond
			w := newWorld(t, tc.cfg, 2)
			a, b := w.nodes[0], w.nodes[1]
			w.crash(b)
			var all []*Conn
			for range tc.conns {
				c := a.host.NewConn(plain)
				w.dial(a, b, c, nil)
				all = append(all, c)
			}
			w.until("the end", tc.most, func() bool { return allClosed(all) })
			for range all {
				var c Completion
				if !a.connect.Pop(&c) || c.Kind != tc.want || c.Kind == KindRefused && BreakReason(c.Data) != BreakPort {
					t.Errorf("%+v", c)
				}
			}
			if n := a.eng.Connections(); n != 0 {
				t.Errorf("%d connections left", n)
			}
		})
	}
}

// A peer that starts within ListenGrace must be reached, even if its host has reported the port closed before.
func TestConnectBeforeThePeerStarts(t *testing.T) {
	w := newWorld(t, simlink.Config{Refuse: true, Delay: 20 * time.Microsecond}, 2)
	a := w.nodes[0]
	w.crash(w.nodes[1])
	c := a.host.NewConn(plain)
	w.dial(a, w.nodes[1], c, nil)
	w.run(900 * time.Millisecond)
	b := w.reboot(1)
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	w.until("the request", 300*time.Millisecond, func() bool { return len(b.arrived) == 1 })
	if a.eng.stats.Unreachable == 0 {
		t.Error("nothing was reported: the test tests nothing")
	}
	w.accept(b, b.host.NewConn(plain), nil)
	w.until("establishment", time.Second, func() bool { return c.State() == Established })
}

// tryReport returns the report of the peer's host about a Connect that left at a time.
func tryReport(c *Conn, at Time) link.Report {
	h := proto.Header{Type: proto.Connect, PSN: c.sent.Nxt, TS: at.Stamp()}
	hi := c.hello(nil)
	var b [proto.HeaderSize + proto.MaxHelloSize]byte
	h.Put(b[:])
	hi.Put(b[proto.HeaderSize:])
	r := link.Report{To: c.eng.portReports.link.Destination(c.path)}
	r.SetQuoted(b[:])
	return r
}

// Attack: forged reports about a connection attempt, each with one wrong field. They must not end the attempt, however
// many come per second, and even if they come for longer than ListenGrace. A valid report must not end the attempt
// either if the Connect that it quotes was sent before the first report came.
func TestAttackForgedUnreachableOfConnect(t *testing.T) {
	flip := func(at int) func(*link.Report, uint32) {
		return func(r *link.Report, i uint32) { r.Quote[at+int(i%32)/8] ^= 1 << (i % 8) }
	}
	for _, tc := range []struct {
		name   string
		change func(*link.Report, uint32)
	}{
		{"CID", flip(proto.HeaderSize)},
		{"tag", flip(proto.HeaderSize + 4)},
		{"PSN", flip(8)},
		{"no Hello", func(r *link.Report, i uint32) { r.Size = proto.HeaderSize + int(i%8) }},
		{"address", func(r *link.Report, i uint32) { r.To = netipOf(i) }},
		{"port", func(r *link.Report, i uint32) { r.To = netip.AddrPortFrom(r.To.Addr(), r.To.Port()^1<<(i%16)) }},
		{"late", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond}, 2)
			a, b := w.nodes[0], w.nodes[1]
			b.down = true
			c := a.host.NewConn(plain)
			w.dial(a, b, c, nil)
			w.run(time.Millisecond)
			first := Time(w.net.Now())
			for i := uint32(0); w.net.Now() < int64(first)+int64(2*time.Second); i++ {
				r := tryReport(c, Time(w.net.Now()))
				if tc.change == nil {
					r = tryReport(c, first)
				} else {
					tc.change(&r, i)
				}
				a.link.Refuse(r)
				w.exactly(100 * time.Microsecond)
			}
			if c.State() != Connecting || (c.dial.graceEnd != 0) != (tc.change == nil) {
				t.Errorf("the attempt is %v, %+v", c.State(), c.dial)
			}
			a.link.Refuse(tryReport(c, Time(w.net.Now())))
			w.exactly(time.Millisecond)
			a.link.Refuse(tryReport(c, Time(w.net.Now())))
			w.exactly(time.Millisecond)
			if c.dial.graceEnd == 0 && c.State() == Connecting {
				t.Error("a true report is ignored too: the test tests nothing")
			}
		})
	}
}

func netipOf(n uint32) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(n >> 16), byte(n >> 8), byte(n)}), 17473)
}
