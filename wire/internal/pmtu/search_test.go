package pmtu

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

const pto = time.Millisecond

// path answers probes up to a size. A silent path answers nothing.
type path struct {
	Search
	now, heard clock.Time
	passes     int
	silent     bool
	probes     []int
	asks       int
}

func newPath(link, peer, passes int) *path {
	p := &path{Search: New(link), now: 1, heard: 1, passes: passes}
	p.Agree(peer)
	p.Start(p.now, p.Unlimited())
	return p
}

// run continues the search until a time.
func (p *path) run(until time.Duration) {
	for p.Deadline() <= clock.Time(until) {
		p.now = max(p.now+1, p.Deadline())
		switch p.Step(p.now, p.heard, pto) {
		case Probe, Test:
			p.probes = append(p.probes, p.Probing())
			if !p.silent && p.Probing() <= p.passes {
				p.heard = p.now + 1
				p.Confirm(p.now, p.Probing())
			} else if !p.silent {
				p.heard = p.now + 1
			}
		case Ask:
			p.asks++
		case Failed:
			p.Fail()
			return
		case None:
		}
	}
}

func TestSearch(t *testing.T) {
	for _, tt := range []struct {
		name               string
		link, peer, passes int
		want, probes       int
	}{
		{"all passes", 8972, 9000, 9000, 8972, 1},
		{"the peer takes less", 8972, 4052, 9000, 4052, 1},
		{"tunnel", 8972, 8972, 1452, 1452, Tries*5 + 1},
		{"nothing larger passes", 1472, 1472, Base, Base, 3 * Tries},
		{"nothing larger is allowed", Base, 9000, 9000, Base, 0},
		{"the peer takes less than the base", 8972, 900, 9000, 900, 0},
	} {
		p := newPath(tt.link, tt.peer, tt.passes)
		if p.run(AgainMin); p.Size != tt.want || len(p.probes) != tt.probes {
			t.Errorf("%s: %d bytes after probes of %v; want %d after %d", tt.name, p.Size, p.probes, tt.want, tt.probes)
		}
	}
}

// New searches must begin at growing intervals, from AgainMin to Again. They must find the size that the path then passes.
func TestSearchAgain(t *testing.T) {
	p := newPath(1400, 1400, Base)
	for i, until := range []time.Duration{AgainMin / 2, 3 * AgainMin / 2, 7 * AgainMin / 2} {
		if p.run(until); len(p.probes) != (i+1)*Tries {
			t.Errorf("%d probes after %v, want those of %d searches", len(p.probes), until, i+1)
		}
	}
	p.run(10 * Again)
	if n := len(p.probes) / Tries; n < 13 || n > 15 {
		t.Errorf("%d searches in %v", n, 10*Again)
	}
	p.passes = 1400
	if p.run(12 * Again); p.Size != 1400 {
		t.Errorf("%d bytes, want 1400", p.Size)
	}
}

// A silent peer must get one probe, and then questions at growing intervals.
func TestSilentPeer(t *testing.T) {
	p := newPath(8972, 8972, 9000)
	p.silent = true
	p.run(20 * time.Second)
	if len(p.probes) != 1 || p.asks < 15 || p.asks > 40 {
		t.Errorf("%d probes and %d questions in 20 s", len(p.probes), p.asks)
	}
}

// The confirmation of a probe that comes late or twice, or was never sent, must change nothing.
func TestConfirm(t *testing.T) {
	p := newPath(8972, 8972, 0)
	for _, n := range []int{-1, 0, 900, Base, 4052, 9000, 1 << 30} {
		if p.Confirm(p.now, n); p.Size != Base {
			t.Fatalf("a probe of %d that was not sent is confirmed", n)
		}
	}
	p.Confirm(p.now, 8972)
	if p.Confirm(p.now, 4052); p.Size != 8972 {
		t.Errorf("%d bytes, want 8972", p.Size)
	}
	if p.Fail(); p.Size != Base {
		t.Errorf("after a black hole: %d bytes", p.Size)
	}
}

// A test of the size in use must find a black hole if VerifyTries probes get lost while the peer answers other packets. It must
// end when one of them arrives.
func TestVerify(t *testing.T) {
	for _, tt := range []struct {
		name         string
		passes       int
		silent       bool
		size, probes int
	}{
		{"it passes", 8972, false, 8972, 1},
		{"it does not pass", 8971, false, Base, VerifyTries},
		{"the peer is silent", 8971, true, 8972, 1},
	} {
		p := newPath(8972, 8972, 9000)
		p.run(time.Second)
		p.now, p.passes, p.silent, p.probes = p.now.Add(time.Second), tt.passes, tt.silent, nil
		p.Verify(p.now)
		until := time.Duration(p.now) + VerifyTries*VerifyEvery + 10*time.Microsecond
		for i := 0; p.Size == 8972 && p.Deadline() < clock.Time(until); i++ {
			p.run(time.Duration(p.Deadline()))
		}
		if p.Size != tt.size || len(p.probes) != tt.probes {
			t.Errorf("%s: %d bytes after %d probes, want %d after %d", tt.name, p.Size, len(p.probes), tt.size, tt.probes)
		}
		if p.EndVerify(p.now); p.verifying {
			t.Errorf("%s: the test goes on", tt.name)
		}
	}
}
