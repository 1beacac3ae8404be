//go:build !race

package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/congestion"
)

// stream keeps one connection busy with writes of one size, and counts the bytes of completed writes.
type stream struct {
	from *node
	c    *Conn
	src  memory
	to   Remote
	size int
	done int
	out  int
}

func (w *world) stream(from, to *node, size int) *stream {
	w.t.Helper()
	if to.host.service(service) == nil {
		if err := to.host.Listen(service, to); err != nil {
			w.t.Fatal(err)
		}
	}
	c, peer := from.host.NewConn(plain), to.host.NewConn(plain)
	w.dial(from, to, c, nil)
	w.until("connection request", 10*time.Second, func() bool { return len(to.arrived) > 0 })
	w.accept(to, peer, nil)
	w.until("establishment", 10*time.Second, func() bool { return c.State() == Established })
	return &stream{from: from, c: c, src: from.memory(size), to: to.memory(size).at(0), size: size}
}

// pump pops completions and posts writes until four are outstanding.
func (w *world) pump(streams []*stream) {
	for _, s := range streams {
		for s.out < 4 {
			if !s.from.post(s.c, s.c.PostWrite(s.src.seg(0, s.size), uint64(s.size), s.to, 0)) {
				break
			}
			s.out++
		}
	}
	for _, n := range w.nodes {
		var c Completion
		for n.request.Pop(&c) {
			for _, s := range streams {
				if s.c == c.Conn {
					s.done += s.size
					s.out--
				}
			}
			if c.Status != StatusSuccess {
				w.t.Fatalf("seed %d: %+v", w.seed, c)
			}
		}
	}
}

// flow runs streams for a virtual time d and returns the rate of each in bits per second.
func (w *world) flow(d time.Duration, streams ...*stream) []float64 {
	for _, s := range streams {
		s.done = 0
	}
	start := w.net.Now()
	for w.net.Now() < start+int64(d) {
		w.pump(streams)
		w.step()
		w.nodes = append(w.nodes[1:], w.nodes[0]) // a different node is polled first each time
	}
	var rates []float64
	for _, s := range streams {
		rates = append(rates, float64(s.done)*8*1e9/float64(w.net.Now()-start))
	}
	return rates
}

// A single connection uses links of many rates and delays, with and without congestion marks. It must fill the link,
// but must not keep the queue of the link full.
func TestWindowFitsTheLink(t *testing.T) {
	for _, tc := range []struct {
		rate  int64
		delay time.Duration
		queue int
		mark  int
		share float64 // least share of the link's rate
	}{
		{5e9, 5 * time.Microsecond, 256, 0, 0.85},
		{1e9, 5 * time.Microsecond, 256, 0, 0.85},
		{1e9, 100 * time.Microsecond, 256, 0, 0.85},
		{1e9, 100 * time.Microsecond, 16, 0, 0.6},
		{100e6, time.Millisecond, 64, 0, 0.8},
		{10e6, 5 * time.Millisecond, 64, 0, 0.8},
		{5e9, 10 * time.Microsecond, 256, 20, 0.85},
		{1e9, 50 * time.Microsecond, 256, 8, 0.85},
	} {
		t.Run(fmt.Sprintf("%dMb %v queue %d mark %d", tc.rate/1e6, tc.delay, tc.queue, tc.mark), func(t *testing.T) {
			w := newWorld(t, simlink.Config{Rate: tc.rate, Delay: tc.delay, QueueFrames: tc.queue, MarkFrames: tc.mark}, 2)
			a := w.nodes[0]
			s := w.stream(a, w.nodes[1], 1<<16)
			span := min(max(100*time.Millisecond, 30*tc.delay), time.Second)
			w.flow(span, s)
			before := a.eng.stats.Retransmits
			share := w.flow(2*span, s)[0] / float64(tc.rate)
			lost := a.eng.stats.Retransmits - before
			base := s.c.cc.BaseDelay()
			t.Logf("%.2f of the rate, round trip %v, in an empty network %v, %d packets sent again", share, s.c.rtt.Smoothed(), base, lost)
			if share < tc.share {
				t.Errorf("%.2f of the rate, want %.2f", share, tc.share)
			}
			packet := time.Duration(1500 * 8 * 1e9 / tc.rate)
			if limit := base + max(congestion.MaxQueue, base/congestion.BaseShare) + 8*packet; s.c.rtt.Smoothed() > limit {
				t.Errorf("round trip %v, want at most %v", s.c.rtt.Smoothed(), limit)
			}
			if tc.mark > 0 && lost > 0 {
				t.Errorf("%d packets lost on a link that marks", lost)
			}
		})
	}
}

// Two connections share a link, and one began earlier. Their rates must be about the same.
func TestTwoFlowsShare(t *testing.T) {
	for _, mark := range []int{0, 20} {
		for _, rate := range []int64{1e9, 2.5e9} {
			w := newWorld(t, simlink.Config{Rate: rate, Delay: 10 * time.Microsecond, QueueFrames: 256, MarkFrames: mark}, 2)
			a, b := w.nodes[0], w.nodes[1]
			first := w.stream(a, b, 1<<16)
			w.flow(100*time.Millisecond, first)
			second := w.stream(a, b, 1<<16)
			w.flow(800*time.Millisecond, first, second)
			got := w.flow(500*time.Millisecond, first, second)
			t.Logf("rate %d mark %d: %.0f and %.0f Mb/s; base %v %v window %v %v at %v", rate, mark, got[0]/1e6, got[1]/1e6, first.c.cc.BaseDelay(), second.c.cc.BaseDelay(), first.c.cc.Window(), second.c.cc.Window(), w.net.Now())
			if r := got[0] / got[1]; r < 1/1.2 || r > 1.2 {
				t.Errorf("rate %d mark %d: %.0f and %.0f Mb/s", rate, mark, got[0]/1e6, got[1]/1e6)
			}
			if sum := got[0] + got[1]; sum < 0.8*float64(rate) {
				t.Errorf("rate %d mark %d: %.0f Mb/s together", rate, mark, sum/1e6)
			}
		}
	}
}

// Incast: 32 senders send to one receiver through one switch port. No sender may starve, and the senders together must
// use most of the rate of the port.
func TestIncast(t *testing.T) {
	for _, mark := range []int{0, 40} {
		w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond, Rate: 1e9, Switch: simlink.Switch{Buffer: 100 * 1518, Mark: mark * 1518}}, 33)
		sink := w.nodes[32]
		var all []*stream
		for _, n := range w.nodes[:32] {
			all = append(all, w.stream(n, sink, 1<<14))
		}
		w.flow(600*time.Millisecond, all...)
		before := w.net.Port(sink.addr).Drops
		rates := w.flow(400*time.Millisecond, all...)
		least, most, sum := rates[0], rates[0], 0.0
		for _, r := range rates {
			least, most, sum = min(least, r), max(most, r), sum+r
		}
		dropped := w.net.Port(sink.addr).Drops
		t.Logf("mark %d: %.0f to %.0f Mb/s, %.1f Gb/s together, fairness %.2f, %d packets dropped at first, %d later",
			mark, least/1e6, most/1e6, sum/1e9, jain(rates), before, dropped-before)
		if fair := jain(rates); least == 0 || fair < 0.95 {
			t.Errorf("mark %d: %.0f to %.0f Mb/s, fairness %.2f", mark, least/1e6, most/1e6, fair)
		}
		if sum < 0.7e9 {
			t.Errorf("mark %d: %.1f Gb/s together", mark, sum/1e9)
		}
		if dropped == 0 {
			t.Errorf("mark %d: the port had room for all: the test shows nothing", mark)
		}
	}
}

// jain returns Jain's fairness index: 1 if all rates are equal, 1/n if one has everything.
func jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(x)) * squares)
}

// Two hosts share the path to a third. Their rates must be about the same, whichever began first.
func TestTwoHostsShare(t *testing.T) {
	for _, mark := range []int{0, 20} {
		w := newWorld(t, simlink.Config{Rate: 1e9, Delay: 10 * time.Microsecond, Switch: simlink.Switch{Buffer: 256 * 1518, Mark: mark * 1518}}, 3)
		a, b, sink := w.nodes[0], w.nodes[1], w.nodes[2]
		first := w.stream(a, sink, 1<<16)
		w.flow(100*time.Millisecond, first)
		second := w.stream(b, sink, 1<<16)
		w.flow(800*time.Millisecond, first, second)
		got := w.flow(500*time.Millisecond, first, second)
		t.Logf("mark %d: %.0f and %.0f Mb/s, %d dropped; windows %.1f %.1f, round trips %v %v, base %v %v", mark, got[0]/1e6, got[1]/1e6, w.net.Port(sink.addr).Drops, first.c.cc.Window(), second.c.cc.Window(), first.c.rtt, second.c.rtt, first.c.cc.BaseDelay(), second.c.cc.BaseDelay())
		if r := got[0] / got[1]; r < 1/1.2 || r > 1.2 || got[0]+got[1] < 0.8*1e9 {
			t.Errorf("mark %d: %.0f and %.0f Mb/s", mark, got[0]/1e6, got[1]/1e6)
		}
	}
}

// The queue of the link has room for fewer packets than there are connections. So each connection sends less than one
// packet per round trip. All of them must make progress.
func TestWindowBelowOnePacket(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 10 * time.Microsecond, Rate: 100e6, QueueFrames: 12}, 2)
	var all []*stream
	for range 40 {
		all = append(all, w.stream(w.nodes[0], w.nodes[1], 4000))
	}
	w.flow(time.Second, all...)
	rates := w.flow(2*time.Second, all...)
	sum, small := 0.0, 0
	for i, s := range all {
		sum += rates[i]
		if rates[i] == 0 {
			t.Errorf("connection %d starves, its window is %v", i, s.c.cc.Window())
		}
		if s.c.cc.Window() < 1 {
			small++
		}
	}
	t.Logf("%.1f Mb/s together, %d windows below one packet", sum/1e6, small)
	if sum < 50e6 {
		t.Errorf("%.1f Mb/s together", sum/1e6)
	}
	if small == 0 {
		t.Error("no window is below one packet: the test shows nothing")
	}
}

// Losses without congestion must cost little: writes of 1 MiB must keep most of their rate, and only lost packets are sent
// again, whether packets move one by one or in groups.
func TestRandomLoss(t *testing.T) {
	for _, group := range []int{0, 65_000} {
		rate := func(loss float64) (rate float64, lost, resent uint64) {
			w := newWorld(t, simlink.Config{Seed: 7, Rate: 2e9, Delay: 5 * time.Microsecond, QueueFrames: 256, Loss: loss, Group: group, Blocks: 4}, 2)
			a, b := w.nodes[0], w.nodes[1]
			s := w.stream(a, b, 1<<20)
			w.flow(20*time.Millisecond, s)
			lost, resent = a.link.Stats().TxPackets-b.link.Stats().RxPackets, a.eng.stats.Retransmits
			rate = w.flow(300*time.Millisecond, s)[0]
			if n := b.link.Stats().RxGroups; n > 0 != (group > 0) {
				t.Errorf("groups of %d bytes: %d arrived", group, n)
			}
			return rate, a.link.Stats().TxPackets - b.link.Stats().RxPackets - lost, a.eng.stats.Retransmits - resent
		}
		clean, _, _ := rate(0)
		for _, tc := range []struct{ loss, keeps float64 }{{0.001, 0.90}, {0.01, 0.75}, {0.05, 0.40}} {
			r, lost, resent := rate(tc.loss)
			kept := r / clean
			t.Logf("groups of %d bytes, %.1f %% loss: %.2f of the rate is kept, %d packets lost and %d sent again", group, tc.loss*100, kept, lost, resent)
			if kept < tc.keeps {
				t.Errorf("groups of %d bytes, %.1f %% loss: %.2f of the rate is kept, want %.2f", group, tc.loss*100, kept, tc.keeps)
			}
			if resent > lost+lost/4 {
				t.Errorf("groups of %d bytes, %.1f %% loss: %d packets lost, and %d sent again", group, tc.loss*100, lost, resent)
			}
		}
	}
}

// A peer that cannot take groups apart gets single packets from the first one on, in both directions: none is lost, and the
// rate is that of a link without groups.
func TestPeerTakesNoGroups(t *testing.T) {
	rate := func(group int) float64 {
		w := newWorld(t, simlink.Config{Seed: 7, Rate: 2e9, Delay: 5 * time.Microsecond, QueueFrames: 256, Group: group, Blocks: 4, NoGroups: true}, 2)
		a, b := w.nodes[0], w.nodes[1]
		rates := w.flow(100*time.Millisecond, w.stream(a, b, 1<<20), w.stream(b, a, 1<<20))
		if n := a.eng.stats.Retransmits + b.eng.stats.Retransmits; n > 0 {
			t.Errorf("%d packets sent again", n)
		}
		return rates[0] + rates[1]
	}
	if groups, single := rate(65_000), rate(0); groups < 0.9*single {
		t.Errorf("%.0f Mb/s with groups, %.0f Mb/s without", groups/1e6, single/1e6)
	}
}

// A connection must not have more packets in flight than the peer's receive buffer holds, also if the peer reads it late.
func TestReceiveBuffer(t *testing.T) {
	for _, window := range []int{minPeerWindow, 100} {
		w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Group: 65_000, Blocks: 16, RxWindow: window}, 2)
		a, b := w.nodes[0], w.nodes[1]
		s := w.stream(a, b, 1<<20)
		w.run(time.Second) // the search for the path MTU ends; a Probe is not part of the window
		for i := range 1000 {
			w.pump([]*stream{s})
			b.down = i%2 == 0
			w.run(50 * time.Microsecond)
		}
		if st := b.link.Stats(); st.RxDropped > 0 || s.done == 0 || st.RxGroups == 0 {
			t.Errorf("window %d: %d bytes written, %d packets sent again, %+v", window, s.done, a.eng.stats.Retransmits, st)
		}
	}
}

// A peer must not have more packets in flight than a connection may hold after a lost one: the others would be dropped and
// sent again. The path is so long that the window grows beyond the frames of the receiver.
func TestFewFramesForEarlyPackets(t *testing.T) {
	w := newWorld(t, simlink.Config{Seed: 3, Rate: 25e9, Delay: time.Millisecond, Frames: 512}, 2)
	a, b := w.nodes[0], w.nodes[1]
	s := w.stream(a, b, 1<<20)
	w.net.SetLoss(a.addr, b.addr, 0.01)
	w.flow(200*time.Millisecond, s)
	resent, lost := a.eng.stats.Retransmits, a.link.Stats().TxPackets-b.link.Stats().RxPackets
	t.Logf("%d bytes written, %d packets lost, %d sent again %v", s.done, lost, resent, a.eng.stats.RetransmitsBy)
	if st := b.eng.stats; st.EarlyDropped > 0 || resent > lost*3/2 {
		t.Errorf("%d packets lost, %d sent again, %d early ones dropped", lost, resent, st.EarlyDropped)
	}
}

// If the last packet of a single message is lost, it must be sent again soon.
func TestLostTail(t *testing.T) {
	for _, delay := range []time.Duration{3 * time.Microsecond, 100 * time.Microsecond} {
		w := newWorld(t, simlink.Config{Delay: delay}, 2)
		a, b := w.nodes[0], w.nodes[1]
		ca, cb := w.pair(plain)
		src, dst := a.memory(64), b.memory(64)
		trip := func() time.Duration {
			b.postRecv(cb, dst.seg(0, 64), 1)
			w.run(10 * time.Millisecond)
			start := w.net.Now()
			a.post(ca, ca.PostSend(src.seg(0, 64), 1, 0))
			a.eng.Poll(Time(w.net.Now()))
			w.net.SetLoss(a.addr, b.addr, 0)
			w.until("the message", time.Second, func() bool { return b.recv.Len() > 0 && a.request.Len() > 0 })
			took := time.Duration(w.net.Now() - start)
			w.drain(a.request)
			w.drain(b.recv)
			return took
		}
		for range 20 {
			trip()
		}
		w.net.SetLoss(a.addr, b.addr, 1)
		took := trip()
		limit := max(3*2*delay, 500*time.Microsecond) + 2*delay
		t.Logf("delay %v: %v", delay, took)
		if a.eng.stats.Retransmits == 0 || took > limit {
			t.Errorf("delay %v: %v after %d packets sent again, want at most %v", delay, took, a.eng.stats.Retransmits, limit)
		}
	}
}
