package dat

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/datxdp/datxdp/wire"
)

// polls is what the driver of the point's connection has counted.
func (p *point) polls() uint64 {
	d := p.drv.Load()
	if !d.own() {
		p.host.t.Fatal("no engine")
	}
	defer d.disown()
	return d.polls
}

// Who posts and takes no events may wait for memory: it does not count as driving, so that the background owner stays
// with it. Who takes events does.
func TestPosterOfMemory(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		word := func(p *point) *uint64 { return (*uint64)(unsafe.Pointer(&p.mem[8])) }
		hop := func(from, to *point, i uint64) {
			*(*uint64)(unsafe.Pointer(&from.mem[0])) = i
			from.letGo()
			ok(t, from.PostRDMAWrite(from.seg(0, 8), i, to.lmr.Remote(8, 8), CompletionSuppress))
			for end := time.Now().Add(patience); atomic.LoadUint64(word(to)) != i; runtime.Gosched() {
				if time.Now().After(end) {
					t.Fatalf("write %d does not arrive", i)
				}
			}
		}
		asleep(t, a)
		asleep(t, b)
		atX := x.polls()
		atY := y.polls()
		for i := uint64(1); i <= 50; i++ {
			hop(x, y, i)
			hop(y, x, i)
		}
		for _, p := range []struct {
			*point
			was uint64
		}{{x, atX}, {y, atY}} {
			if polls := p.polls(); polls != p.was {
				t.Errorf("%d posts without an event count as %d polls of one that drives", 50, polls-p.was)
			}
		}
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 51, y.lmr.Remote(8, 8), 0))
		x.done(x.request, 51, DTORDMAWrite, DTOSuccess, 8)
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 52, y.lmr.Remote(8, 8), 0))
		if polls := x.polls(); polls == atX {
			t.Error("a post by who has taken an event does not count")
		}
	})
}

// What is posted by who takes events and has more to take waits for more, but not without end; what others post does
// not.
func TestGather(t *testing.T) {
	const events = 16
	a, b := newHosts(t, newSim(t), Options{})
	x, y := pair(a, b, &EPAttr{MaxRequestDTOs: events, MaxRecvDTOs: 1})
	for i := range uint64(events) {
		ok(t, x.PostRDMAWrite(x.seg(0, 8), i, y.lmr.Remote(0, 8), 0))
	}
	eventually(t, "completion", func() bool { return x.request.Len() == events })
	d := x.drv.Load()
	if !d.own() {
		t.Fatal("no engine")
	}
	defer d.disown()
	d.gather(x.conn) // whatever was before
	waits := func(what string, want bool) {
		t.Helper()
		if got := d.gather(x.conn); got != want {
			t.Errorf("%s: it waits: %v", what, got)
		}
	}
	take := func(n int) {
		t.Helper()
		for range n {
			var ev Event
			ok(t, x.request.Dequeue(&ev))
		}
	}
	waits("nothing was taken", false)
	take(1)
	for range gatherMost {
		waits("one was taken, 15 are there", true)
	}
	polls := d.polls
	waits("as many as may", false)
	if d.polls == polls {
		t.Error("who takes events does not count as driving")
	}
	waits("nothing was taken since", false)
	if d.polls != polls+1 {
		t.Error("who takes none counts as driving")
	}
	take(1)
	waits("one was taken again", true)
	take(9)
	waits("five are there", false)
}

// Who does something for each post has its posts leave at once, whatever events it has to take; who posts as fast as it
// can does not.
func TestSlowPoster(t *testing.T) {
	const events = 16
	a, b := newHosts(t, newSim(t), Options{})
	x, y := pair(a, b, &EPAttr{MaxRequestDTOs: 1024, MaxRecvDTOs: 1})
	write := func(flags CompletionFlags) { ok(t, x.PostRDMAWrite(x.seg(0, 8), 0, y.lmr.Remote(0, 8), flags)) }
	for range events {
		write(0)
	}
	eventually(t, "completion", func() bool { return x.request.Len() == events })
	d := x.drv.Load()
	eventually(t, "slow caller", func() bool {
		for range 2 * paceEvery {
			write(CompletionSuppress)
			for start := clock(); clock().Sub(start) < 2*slowPost; {
			}
		}
		d.eng.Own()
		defer d.disown()
		return d.pace.slow
	})
	d.eng.Own()
	defer d.disown()
	var ev Event
	ok(t, x.request.Dequeue(&ev))
	if d.gather(x.conn) {
		t.Error("a slow caller's posts wait")
	}
	ok(t, x.request.Dequeue(&ev))
	d.pace.from = 1
	if d.pace.judge(1 + wire.Time(slowPost)); !d.gather(x.conn) {
		t.Error("a fast caller's posts do not wait")
	}
}
