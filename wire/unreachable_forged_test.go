package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

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
	h := proto.Header{Type: proto.Ack, CID: c.peerCID, PSN: c.sent.Nxt, Ack: c.recv.nextPSN, TS: c.eng.now.Stamp(), Tag: c.peerTag}
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
			w.poll() // the time stamps of the reports are those of now
			sent := a.eng.stats.TxPackets
			for i := range uint32(64) {
				a.link.Refuse(forge(ca, kind, i))
				w.poll()
			}
			s := a.eng.Stats()
			if s.Unreachable != 64 || s.UnreachableIgnored != 64 || s.TxPackets != sent || ca.challenge.pending || a.eng.portReports.n != 0 {
				t.Errorf("%d of %d reports ignored, %d packets sent, %+v", s.UnreachableIgnored, s.Unreachable, s.TxPackets-sent, ca.challenge)
			}
			a.link.Refuse(reportOf(ca, Time(w.net.Now())))
			w.poll()
			if !ca.challenge.pending {
				t.Error("a true report is ignored too: the test tests nothing")
			}
		})
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
	if ca.challenge.begunAt == 0 {
		t.Error("the report raised no doubt: the test tests nothing")
	}
	b.down = false
	w.until("the write", time.Second, func() bool { return a.request.Len() == 1 })
	if ca.State() != Established || ca.challenge.pending {
		t.Errorf("the connection is %v, %+v", ca.State(), ca.challenge)
	}
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

// Attack 27: a host reports all the time that the ports of its own connections are closed. Another peer's process ends,
// and its kernel sends six reports and then one a second. All connections to it must end within seconds.
func TestAttackReportsOfOwnPorts(t *testing.T) {
	for _, tc := range []struct {
		name string
		port func(i int) netip.AddrPort
	}{
		{"an address", func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), uint16(i+1))
		}},
		{"a network", func(i int) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 1) }},
		{"the peer's network", func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 200}), uint16(i+1))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorldOf(t, simlink.Config{Delay: 20 * time.Microsecond, Refuse: true, RefuseSlowly: true}, Limits{}, 2)
			a, b := w.nodes[0], w.nodes[1]
			var all []*Conn
			for range 40 {
				ca, _ := w.pair(plain)
				all = append(all, ca)
			}
			w.exactly(time.Second)
			foe := func() {
				now := Time(w.net.Now())
				for i := range maxClosedPorts {
					a.eng.portReports.noteClosed(tc.port(i), now.Stamp(), now, len(a.eng.table.slots))
				}
			}
			foe()
			w.crash(b)
			src, dst := a.memory(64), b.memory(64)
			a.post(all[0], all[0].PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
			start := w.net.Now()
			for !allClosed(all) {
				if w.net.Now()-start > int64(4*time.Second) {
					t.Fatal("connections are left after 4 s")
				}
				foe()
				w.exactly(100 * time.Millisecond)
			}
			t.Logf("noticed after %v", time.Duration(w.net.Now()-start))
		})
	}
}
