package wire

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// A killed process is noticed because its host answers with ICMP. Every connection to the process must notice its end
// within 100 ms, whether the connection is idle or has outstanding data. The other connections of the engine must not
// be affected.
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
			if loss == 0 { // nothing is outstanding, so the host answers the next packet
				killed = killed[:25]
			} else {
				for _, ca := range killed[25:] {
					a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
				}
			}
			start := w.net.Now()
			w.until("the end of all connections", 100*time.Millisecond, func() bool { return allClosed(killed) })
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

func allClosed(all []*Conn) bool {
	for _, c := range all {
		if c.State() != Closed {
			return false
		}
	}
	return true
}

// Idle connections to a killed process must end as soon as its host has answered one packet to it.
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

// A report about a connection must also count for connections of other engines to that port, and for no others.
func TestReportCountsForOtherEngine(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	second := &node{t: t, host: a.host, addr: netipOf(7), recv: a.recv, request: a.request, connect: a.connect}
	second.link = w.net.Link(second.addr)
	var err error
	if second.eng, err = a.host.NewEngine(second.link, Time(w.net.Now())); err != nil {
		t.Fatal(err)
	}
	third := w.addNode(netip.AddrPortFrom(b.addr.Addr(), 9)) // a process at the same address
	first, _ := w.pair(plain)
	w.nodes = append(w.nodes, second)
	w.nodes[0] = second
	same, _ := w.pair(plain)
	w.nodes[1] = third
	other, _ := w.pair(plain)
	w.run(time.Second)
	w.crash(b)
	third.down = true
	for range 2 {
		second.link.Refuse(reportOf(first, Time(w.net.Now())))
		w.run(50 * time.Millisecond)
	}
	if same.State() != Closed || other.State() != Established || other.challengeAck.begun != 0 {
		t.Errorf("the connection is %v, one to another port %v with challenge ACK %+v", same.State(), other.State(), other.challengeAck)
	}
	if s := second.eng.Stats(); s.Unreachable != 2 || s.UnreachableIgnored != 0 {
		t.Errorf("%d reports, %d ignored", s.Unreachable, s.UnreachableIgnored)
	}
}

// reportOf returns the report of the peer's host about an Ack that left at a time.
func reportOf(c *Conn, at Time) link.Report {
	h := proto.Header{Type: proto.Ack, CID: c.peerCID, PSN: c.sent.Nxt, Ack: c.recv.next, TS: at.Stamp(), Tag: c.peerTag}
	return quoting(c.eng.portReports.link.Destination(c.path), &h)
}

func quoting(at netip.AddrPort, h *proto.Header) link.Report {
	var b [proto.HeaderSize]byte
	h.Put(b[:])
	r := link.Report{To: at}
	r.SetQuoted(b[:])
	return r
}

// forgeries lists functions that each change one thing in a valid report.
var forgeries = []struct {
	name   string
	change func(*proto.Header, *link.Report, uint32)
}{
	{"tag", func(h *proto.Header, _ *link.Report, i uint32) { h.Tag ^= 1 << (i % 32) }},
	{"no tag", func(h *proto.Header, _ *link.Report, _ uint32) { h.Tag = 0 }},
	{"connection ID", func(h *proto.Header, _ *link.Report, i uint32) { h.CID ^= 1 << (i % 32) }},
	{"PSN ahead", func(h *proto.Header, _ *link.Report, i uint32) { h.PSN += 2 + 1<<(i%31) }},
	{"PSN behind", func(h *proto.Header, _ *link.Report, i uint32) { h.PSN -= 2*proto.MaxWindow + 1<<(i%31) }},
	{"time ahead", func(h *proto.Header, _ *link.Report, i uint32) { h.TS += 1 << (10 + i%22) }},
	{"time behind", func(h *proto.Header, _ *link.Report, i uint32) {
		h.TS -= uint32(challengeAckLimit>>clock.StampShift) + 1<<(i%30)
	}},
	{"Connect", func(h *proto.Header, _ *link.Report, _ uint32) { h.Type, h.CID, h.Tag = proto.Connect, 0, 0 }},
	{"port", func(_ *proto.Header, r *link.Report, i uint32) {
		r.To = netip.AddrPortFrom(r.To.Addr(), r.To.Port()^1<<(i%16))
	}},
	{"address", func(_ *proto.Header, r *link.Report, i uint32) {
		r.To = netip.AddrPortFrom(netipOf(i).Addr(), r.To.Port())
	}},
	{"short", func(_ *proto.Header, r *link.Report, i uint32) { r.Size = int(i % proto.HeaderSize) }},
	{"bad size", func(_ *proto.Header, r *link.Report, i uint32) { r.Size = -int(i % 100) }},
}

// forge returns the i-th forged report about a connection. kind is an index into forgeries.
func forge(c *Conn, kind int, i uint32) link.Report {
	h := proto.Header{Type: proto.Ack, CID: c.peerCID, PSN: c.sent.Nxt, Ack: c.recv.next, TS: c.eng.now.Stamp(), Tag: c.peerTag}
	at := c.eng.portReports.link.Destination(c.path)
	r := quoting(at, &h)
	forgeries[kind].change(&h, &r, i)
	changed := quoting(r.To, &h)
	changed.Size = min(changed.Size, r.Size)
	return changed
}

// Each part of a report must be checked. If one is wrong, no challenge ACK may leave.
func TestForgedReportIsIgnored(t *testing.T) {
	for kind := range forgeries {
		t.Run(forgeries[kind].name, func(t *testing.T) {
			w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
			a := w.nodes[0]
			ca, _ := w.pair(plain)
			w.run(time.Second)
			sent := a.eng.stats.TxPackets
			for i := range uint32(64) {
				a.link.Refuse(forge(ca, kind, i))
				w.poll()
			}
			s := a.eng.Stats()
			if s.Unreachable != 64 || s.UnreachableIgnored != 64 || s.TxPackets != sent || ca.challengeAck.pending || a.eng.portReports.n != 0 {
				t.Errorf("%d of %d reports ignored, %d packets sent, %+v", s.UnreachableIgnored, s.Unreachable, s.TxPackets-sent, ca.challengeAck)
			}
			a.link.Refuse(reportOf(ca, Time(w.net.Now())))
			w.poll()
			if !ca.challengeAck.pending {
				t.Error("a true report is ignored too: the test tests nothing")
			}
		})
	}
}

// exactly runs for exactly the virtual time d.
func (w *world) exactly(d time.Duration) {
	for end := w.net.Now() + int64(d); w.net.Now() < end; {
		if w.poll() {
			w.net.Advance(w.net.Now() + spin)
		} else {
			w.net.Advance(min(end, max(int64(w.next()), w.net.Now()+spin)))
		}
	}
}

// The engine gets a valid report that the peer's port is closed, but the peer is silent for another reason. A single
// report must not break the connection, because the report may be old. It makes the connection send a challenge ACK. A
// second report must not break the connection either if it quotes a packet that left before the challenge ACK, however
// often such a report comes.
func TestAttackOneForgedUnreachableOfSilentPeer(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(plain)
	src, dst := a.memory(64), b.memory(64)
	b.down = true
	a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	w.run(10 * time.Millisecond)
	late := reportOf(ca, Time(w.net.Now()))
	w.run(time.Millisecond)
	for end := w.net.Now() + int64(5*time.Second); w.net.Now() < end; {
		a.link.Refuse(late)
		w.poll()
		w.net.Advance(w.net.Now() + int64(time.Millisecond))
	}
	if ca.challengeAck.begun == 0 {
		t.Error("the report raised no doubt: the test tests nothing")
	}
	b.down = false
	w.until("the write", time.Second, func() bool { return a.request.Len() == 1 })
	if ca.State() != Established || ca.challengeAck.pending {
		t.Errorf("the connection is %v, %+v", ca.State(), ca.challengeAck)
	}
}

// A report or a Reset that quotes the challenge ACK must break the connection at once.
func TestReportOfProbeBreaks(t *testing.T) {
	for _, reset := range []bool{false, true} {
		w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
		a, b := w.nodes[0], w.nodes[1]
		ca, _ := w.pair(plain)
		w.run(time.Second)
		b.down = true
		a.link.Refuse(reportOf(ca, Time(w.net.Now())))
		w.poll()
		probe := reportOf(ca, Time(w.net.Now()))
		w.net.Advance(w.net.Now() + spin)
		if reset {
			w.inject(b, a, &proto.Header{Type: proto.Reset, CID: ca.peerCID, PSN: ca.sent.Nxt, Echo: ca.challengeAck.begun.Stamp(), Tag: ca.peerTag}, nil)
		} else {
			a.link.Refuse(probe)
			w.poll()
		}
		if ca.State() != Closed {
			t.Errorf("Reset %v: the connection is %v", reset, ca.State())
		}
	}
}

// A peer process has ended and its host has reported this. Then no connection may send to the peer any more: neither a
// connection that the report breaks, nor a connection that the consumer closed before or closes later.
func TestNothingIsSentToAnEndedPeer(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: true, RefuseSlowly: true}, 2)
	a, b := w.nodes[0], w.nodes[1]
	all := w.pairs(100)
	src, dst := a.memory(64), b.memory(64)
	w.run(time.Second)
	w.crash(b)
	w.poll()
	if err := a.eng.Disconnect(all[0], false); err != nil { // before the end of the process is known
		t.Fatal(err)
	}
	a.post(all[1], all[1].PostWrite(src.seg(0, 64), 7, dst.at(0), 0))
	w.until("the first end", time.Second, func() bool { return a.eng.stats.Broken > 0 && all[2].State() == Established })
	sent := a.eng.stats.TxPackets
	if err := a.eng.Disconnect(all[2], false); err != nil {
		t.Fatal(err)
	}
	if a.eng.flush(); a.eng.stats.TxPackets != sent {
		t.Error("a connection that was closed after the first end sent Close")
	}
	w.until("the end of all", 3*time.Second, func() bool { return allClosed(all) })
	sent = a.eng.stats.TxPackets
	w.run(5 * time.Second)
	if n := a.eng.stats.TxPackets - sent; n != 0 {
		t.Errorf("%d packets were sent after the last end", n)
	}
	var c Completion
	if !a.request.Pop(&c) || c.Status != StatusTransport || c.Cookie != 7 {
		t.Errorf("the write: %+v", c)
	}
	broken := 0
	for a.connect.Pop(&c) {
		if c.Kind == KindBroken && BreakReason(c.Data) == BreakTimeout {
			broken++
		}
	}
	if broken != len(all)-2 || len(a.host.peers.cids) != 0 || a.eng.Connections() != 0 {
		t.Errorf("%d connections broke, want %d; %d can be found, %d are left", broken, len(all)-2, len(a.host.peers.cids), a.eng.Connections())
	}
}

// A report about many connections to a port may cause few challenge ACKs per Poll, so that other packets need not wait.
func TestProbesOfManyLeaveInParts(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	all := w.pairs(200)
	w.run(time.Second)
	w.poll()
	b.down = true
	a.link.Refuse(reportOf(all[0], Time(w.net.Now())))
	probed := func() (n int) {
		for _, c := range all {
			if c.challengeAck.pending {
				n++
			}
		}
		return n
	}
	for n := 0; n < len(all); {
		sent := a.eng.stats.TxPackets
		a.eng.Poll(Time(w.net.Now()))
		if d := a.eng.stats.TxPackets - sent; d > 16 {
			t.Fatalf("%d probes left in one Poll", d)
		}
		w.net.Advance(w.net.Now() + spin)
		if n = probed(); a.eng.stats.TxPackets > 1<<20 || w.net.Now() > int64(time.Minute) {
			t.Fatalf("%d of %d connections were probed", n, len(all))
		}
	}
}

// Close must not be repeated to a closed port. One report must count for all connections to it.
func TestCloseIsNotRepeatedToAnEndedPeer(t *testing.T) {
	for _, refuse := range []bool{true, false} {
		w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: refuse, RefuseSlowly: true}, 2)
		a := w.nodes[0]
		all := w.pairs(100)
		w.run(time.Second)
		w.crash(w.nodes[1])
		w.poll()
		sent := a.eng.stats.TxPackets
		for _, c := range all {
			if err := a.eng.Disconnect(c, false); err != nil {
				t.Fatal(err)
			}
		}
		w.run(5 * time.Second)
		want := uint64(len(all))
		if !refuse {
			want *= closeTries
		}
		if n := a.eng.stats.TxPackets - sent; n != want || a.eng.Connections() != 0 || len(a.host.peers.cids) != 0 {
			t.Errorf("reports %v: %d packets, want %d; %d connections are left, %d can be found", refuse, n, want, a.eng.Connections(), len(a.host.peers.cids))
		}
	}
}

// pairs connects n connections between nodes 0 and 1. It returns the ends at node 0.
func (w *world) pairs(n int) (all []*Conn) {
	for range n {
		ca, _ := w.pair(plain)
		all = append(all, ca)
	}
	return all
}

// Reports about addresses without a connection must cost no memory and must not hide a peer's report.
func TestAttackForgedUnreachableOfStrangers(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: true}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(plain)
	r := randSource(4)
	stranger := func() link.Report {
		report := reportOf(ca, Time(w.net.Now()))
		report.To = netipOf(r.Uint32())
		return report
	}
	for range 4 * maxClosedPorts { // as many forged reports as there is room for, before the genuine one
		a.link.Refuse(stranger())
		w.poll()
		w.net.Advance(w.net.Now() + int64(time.Millisecond))
	}
	if a.eng.portReports.n != 0 {
		t.Errorf("%d ports are kept", a.eng.portReports.n)
	}
	w.crash(b)
	src, dst := a.memory(64), b.memory(64)
	a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	start := w.net.Now()
	w.until("the end", 200*time.Millisecond, func() bool {
		for range 4 {
			a.link.Refuse(stranger())
		}
		return ca.State() == Closed
	})
	t.Logf("noticed after %v", time.Duration(w.net.Now()-start))
	w.run(2 * challengeAckLimit)
	w.poll()
	if a.eng.portReports.n != 0 {
		t.Errorf("%d ports are still kept", a.eng.portReports.n)
	}
}

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
