package wire

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
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
				w.wantBroken(a.connect, BreakEnded)
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
	if same.State() != Closed || other.State() != Established || other.challenge.begunAt != 0 {
		t.Errorf("the connection is %v, one to another port %v with challenge ACK %+v", same.State(), other.State(), other.challenge)
	}
	if s := second.eng.Stats(); s.Unreachable != 2 || s.UnreachableIgnored != 0 {
		t.Errorf("%d reports, %d ignored", s.Unreachable, s.UnreachableIgnored)
	}
}

// reportOf returns the report of the peer's host about an Ack that left at a time.
func reportOf(c *Conn, at Time) link.Report {
	h := proto.Header{Type: proto.Ack, CID: c.peerCID, PSN: c.sent.Nxt, Ack: c.recv.nextPSN, TS: at.Stamp(), Tag: c.peerTag}
	return quoting(c.eng.portReports.link.Destination(c.path), &h)
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
			w.inject(b, a, &proto.Header{Type: proto.Reset, CID: ca.peerCID, PSN: ca.sent.Nxt, Echo: ca.challenge.begunAt.Stamp(), Tag: ca.peerTag}, nil)
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
		if c.Kind == KindBroken && BreakReason(c.Data) == BreakEnded {
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
			if c.challenge.pending {
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
