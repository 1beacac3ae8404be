package dat

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/datxdp/datxdp/link"
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
		const hops = 200 // more than packets may leave without a pause
		for i := uint64(1); i <= hops; i++ {
			hop(x, y, i)
			hop(y, x, i)
		}
		for _, p := range []struct {
			*point
			was uint64
		}{{x, atX}, {y, atY}} {
			if polls := p.polls(); polls != p.was {
				t.Errorf("%d posts without an event count as %d polls of one that drives", hops, polls-p.was)
			}
		}
		ok(t, x.PostRDMAWrite(x.seg(0, 8), hops+1, y.lmr.Remote(8, 8), 0))
		x.done(x.request, hops+1, DTORDMAWrite, DTOSuccess, 8)
		atX = x.polls()
		ok(t, x.PostRDMAWrite(x.seg(0, 8), hops+2, y.lmr.Remote(8, 8), 0))
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
	now := clock()
	d.eng.Poll(now)
	d.eng.Poll(now)  // the caller does nothing else
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

// Who does something for each post has its posts leave at once, whatever events it has to take.
func TestSlowPoster(t *testing.T) {
	const events = 16
	a, b := newHosts(t, newSim(t), Options{})
	x, y := pair(a, b, &EPAttr{MaxRequestDTOs: events, MaxRecvDTOs: 1})
	for range events {
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 0, y.lmr.Remote(0, 8), 0))
	}
	eventually(t, "completion", func() bool { return x.request.Len() == events })
	var ev Event
	ok(t, x.request.Dequeue(&ev))
	d := x.drv.Load()
	d.eng.Own()
	defer d.disown()
	now := clock()
	d.eng.Poll(now)
	d.eng.Poll(now.Add(time.Millisecond)) // in which nothing was posted
	if d.gather(x.conn) {
		t.Error("a slow caller's posts wait")
	}
	ok(t, x.request.Dequeue(&ev))
	if d.eng.Poll(now.Add(time.Millisecond)); !d.gather(x.conn) {
		t.Error("a fast caller's posts do not wait")
	}
}

// wakes counts what wakes a link.
type wakes struct {
	link.Link
	n *atomic.Int64
}

func (w wakes) Wake() {
	w.n.Add(1)
	w.Link.Wake()
}

// What is posted while another caller has the engine, and leaves when that lets go of it, may be lost: the background owner,
// asleep until a later time, is roused for it.
func TestRungPostRouses(t *testing.T) {
	var n atomic.Int64
	nw := newSim(t)
	a := newHost(t, nw, 0, Options{Wrap: func(l link.Link) link.Link { return wakes{l, &n} }})
	b := newHost(t, nw, 1, Options{})
	b.listen(testQual, 8)
	x, y := pair(a, b, nil)
	asleep(t, a)
	d := x.drv.Load()
	d.eng.Own()
	was := n.Load()
	ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0))
	if n.Load() != was {
		t.Fatal("the post had the engine")
	}
	if d.disown(); n.Load() == was && d.asleep.Load() {
		t.Error("the background owner sleeps on")
	}
	x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 8)
}
