package dat

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// polls returns Polls of the driver that has the point's connection.
func (p *point) polls() uint64 {
	d := p.drv.Load()
	if !d.Own() {
		p.host.t.Fatal("no engine")
	}
	defer d.Disown()
	return d.Polls()
}

// TestEndsWithoutPolls: freeing an endpoint whose connection has ended does not poll the engine, because a poll runs
// the timers of all connections. Closing an adapter does not poll once for each endpoint.
func TestEndsWithoutPolls(t *testing.T) {
	const pairs = 64
	for name, end := range map[string]func(*testing.T, *host, []*point){
		"free": func(t *testing.T, _ *host, all []*point) {
			for _, y := range all {
				ok(t, y.peer.Disconnect(CloseAbrupt))
				y.expect(EventDisconnected)
			}
			was := all[0].enginePolls()
			for _, y := range all {
				ok(t, y.Free())
			}
			if n := all[0].enginePolls() - was; n >= pairs { // the background owner also polls, a few times
				t.Errorf("%d polls", n)
			}
		},
		"close": func(t *testing.T, h *host, all []*point) {
			was := all[0].enginePolls()
			ok(t, h.ia.Close())
			// With the answers of the peers come up to a poll for each. An end with polls of its own would add two.
			if n := all[0].eng().Stats().Polls - was; n >= 2*pairs {
				t.Errorf("%d polls", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newHosts(t, newSim(t), Options{})
			var all []*point
			for range pairs {
				_, y := pair(a, b, nil)
				all = append(all, y)
			}
			end(t, b, all)
		})
	}
}

func (p *point) eng() *wire.Engine { return p.drv.Load().eng }

func (p *point) enginePolls() (n uint64) {
	p.drv.Load().With(func() { n = p.eng().Stats().Polls })
	return n
}

// TestPosterOfMemory: a goroutine posts writes but takes no events; it waits until a write of the peer changes its
// memory. Such a goroutine does not count as a caller that polls, so the background owner keeps polling. As a control,
// the goroutine then takes an event: after that, it must count as a caller that polls.
func TestPosterOfMemory(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		word := func(p *point) *uint64 { return (*uint64)(unsafe.Pointer(&p.mem[8])) }
		hop := func(from, to *point, i uint64) {
			*(*uint64)(unsafe.Pointer(&from.mem[0])) = i
			from.memoryBarrier()
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
		const hops = 200 // more packets than the token bucket lets pass without a pause
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
		for i := range uint64(100) { // a post that leaves its packet to the background owner or to the next poll does not count
			atX = x.polls()
			ok(t, x.PostRDMAWrite(x.seg(0, 8), hops+1+i, y.lmr.Remote(8, 8), 0))
			if x.polls() != atX && i > 0 {
				return
			}
			x.done(x.request, hops+1+i, DTORDMAWrite, DTOSuccess, 8)
		}
		t.Error("no post of a goroutine that has taken an event counts")
	})
}

// wakes is a link that counts the calls of Wake.
type wakes struct {
	link.Link
	n *atomic.Int64
}

func (w wakes) Wake() {
	w.n.Add(1)
	w.Link.Wake()
}

// TestRungPostRouses: if a goroutine posts while another goroutine owns the engine, the owner sends the post when it
// gives the engine up. The owner must also wake the background owner. Otherwise, if the packet of the post is lost, the
// background owner may sleep beyond the retransmission timeout and retransmit too late.
func TestRungPostRouses(t *testing.T) {
	var n atomic.Int64
	nw := newSim(t)
	a := newHost(t, nw, 0, Options{Wrap: func(l link.Link) link.Link { return wakes{l, &n} }})
	b := newHost(t, nw, 1, Options{})
	b.listen(testQual, 8)
	x, y := pair(a, b, nil)
	asleep(t, a)
	d := x.drv.Load()
	d.Own()
	was := n.Load()
	ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0))
	if n.Load() != was {
		t.Fatal("the post had the engine")
	}
	if d.Disown(); n.Load() == was && d.Phase() == progress.Sleeping {
		t.Error("the background owner sleeps on")
	}
	x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 8)
}
