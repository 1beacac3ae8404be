//go:build !race

package tcp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// party is a sender or a receiver in a simulated network.
type party struct {
	link *simlink.Link
	turn func(now int64) (int64, int)
	next int64
}

// bench is senders around a switch whose port to all receivers is one.
type bench struct {
	net       *simlink.Net
	parties   []*party
	senders   []*Sender
	receivers []*Receiver
}

const (
	segmentSize = 1472
	port        = 17000
)

func addr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), port)
}

func newBench(t *testing.T, cfg simlink.Config, controls ...Control) *bench {
	t.Helper()
	cfg.MTU, cfg.FrameSize, cfg.Frames, cfg.Unchecked = segmentSize, segmentSize, 4096, true
	b := &bench{net: simlink.New(cfg)}
	for i, c := range controls {
		from, to := b.net.LinkOf(addr(2*i), simlink.Host{Frames: 128}), b.net.Link(addr(2*i+1))
		b.net.SharePort(addr(1), addr(2*i+1))
		there, err := from.Resolve(addr(2*i+1), 0)
		if err != nil {
			t.Fatal(err)
		}
		back, err := to.Resolve(addr(2*i), 0)
		if err != nil {
			t.Fatal(err)
		}
		_, ecn := c.(*DCTCP)
		s, r := NewSender(from, there, segmentSize, c), NewReceiver(to, back, ecn)
		b.senders, b.receivers = append(b.senders, s), append(b.receivers, r)
		b.parties = append(b.parties, &party{from, s.Turn, 0}, &party{to, r.Turn, never})
	}
	return b
}

// run lets the parties run for a time. It returns the segments that each receiver got.
func (b *bench) run(d time.Duration) (got []int64) {
	for _, r := range b.receivers {
		got = append(got, -r.Received())
	}
	for end := b.net.Now() + int64(d); b.net.Now() < end; {
		next := b.parties[0]
		for _, p := range b.parties {
			if p.next < next.next {
				next = p
			}
		}
		if at, ok := b.net.Next(); ok && at <= next.next {
			if l := b.net.Step(); l != nil {
				for _, p := range b.parties {
					if p.link == l {
						p.next = min(p.next, b.net.Now())
					}
				}
			}
			continue
		}
		b.net.Advance(min(next.next, end))
		next.next, _ = next.turn(b.net.Now())
	}
	for i, r := range b.receivers {
		got[i] += r.Received()
	}
	return got
}

// share returns the share of the port that n segments in a time have.
func share(n int64, d time.Duration, rate float64) float64 {
	return float64(n) * (segmentSize + 46) * 8 / d.Seconds() / rate
}

func TestOneFlowFillsThePort(t *testing.T) {
	for name, c := range map[string]func() Control{
		"newreno": func() Control { return NewReno{} },
		"cubic":   func() Control { return &Cubic{} },
		"dctcp":   func() Control { return NewDCTCP() },
	} {
		b := newBench(t, simlink.Config{Rate: 10e9, Delay: 50 * time.Microsecond,
			Switch: simlink.Switch{Rate: 5e9, Buffer: 128 << 10, Mark: 30 << 10}}, c())
		b.run(100 * time.Millisecond)
		b.net.ResetPorts()
		got := share(b.run(200 * time.Millisecond)[0], 200*time.Millisecond, 5e9)
		p := b.net.Port(addr(1))
		t.Logf("%s: %.2f of the port, window %.1f, %+v", name, got, b.senders[0].Window(), p)
		if got < 0.9 {
			t.Errorf("%s: %.2f of the port", name, got)
		}
		if drops := p.Drops > 0; drops == (name == "dctcp") {
			t.Errorf("%s: %d drops", name, p.Drops)
		}
	}
}

func TestEqualFlowsShare(t *testing.T) {
	for name, c := range map[string]func() Control{
		"newreno": func() Control { return NewReno{} },
		"cubic":   func() Control { return &Cubic{} },
		"dctcp":   func() Control { return NewDCTCP() },
	} {
		b := newBench(t, simlink.Config{Rate: 2e9, Delay: 100 * time.Microsecond, Switch: simlink.Switch{Rate: 1e9, Buffer: 64 << 10, Mark: 20 << 10}}, c(), c())
		b.run(time.Second)
		got := b.run(2 * time.Second)
		t.Logf("%s: %d and %d segments", name, got[0], got[1])
		if r := float64(got[0]) / float64(got[1]); r < 0.6 || r > 1.6 {
			t.Errorf("%s: %d and %d segments", name, got[0], got[1])
		}
	}
}

// The window of NewReno at random loss p is about 1.2 ÷ √p (Mathis and others, 1997), and the segments that arrive are in
// order.
func TestRandomLoss(t *testing.T) {
	const p, rtt, run = 0.001, 10 * time.Millisecond, 60 * time.Second
	b := newBench(t, simlink.Config{Seed: 1, Rate: 10e9, Delay: rtt / 2, Switch: simlink.Switch{Buffer: 1 << 30}}, NewReno{})
	b.net.SetLoss(addr(0), addr(1), p)
	b.run(2 * time.Second)
	window := float64(b.run(run)[0]) / run.Seconds() * rtt.Seconds()
	t.Logf("mean window %.1f segments", window)
	if window < 25 || window > 50 {
		t.Errorf("mean window %.1f segments, want about 38", window)
	}
}

// After an outage the sender goes on when its timer of at least 200 ms expires.
func TestTimeout(t *testing.T) {
	b := newBench(t, simlink.Config{Rate: 1e9, Delay: 50 * time.Microsecond, Switch: simlink.Switch{Buffer: 128 << 10}}, &Cubic{})
	b.run(50 * time.Millisecond)
	b.net.SetDown(addr(1), true)
	b.run(100 * time.Millisecond)
	b.net.SetDown(addr(1), false)
	if got := b.run(90 * time.Millisecond)[0]; got > 0 {
		t.Errorf("%d segments before the timeout", got)
	}
	if got := share(b.run(100 * time.Millisecond)[0], 100*time.Millisecond, 1e9); got < 0.8 {
		t.Errorf("%.2f of the port after the timeout", got)
	}
}

// The window of CUBIC passes its last maximum at the time K (RFC 9438 §4.2).
func TestCubicCurve(t *testing.T) {
	c, w := &Cubic{}, &window{cwnd: 1000, ssthresh: 1, srtt: 0.1}
	w.cwnd *= c.lost(w)
	if w.cwnd != 700 {
		t.Fatalf("%v segments after a loss", w.cwnd)
	}
	k := 9.08 // cbrt(1000*0.3/0.4)
	for w.now = 1; w.now < 1+k+5; w.now += 0.01 {
		c.grow(w, 70)
		if at := w.now - 1; at > k-0.01 && at < k && (w.cwnd < 990 || w.cwnd > 1010) {
			t.Errorf("%.1f segments at K", w.cwnd)
		}
	}
	if w.cwnd < 1040 || w.cwnd > 1080 {
		t.Errorf("%.1f segments 5 s after K, want 1050", w.cwnd)
	}
}
