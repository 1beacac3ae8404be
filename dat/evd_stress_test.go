package dat

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowd is the state of goroutines that use one endpoint, one dispatcher and its CNOs at the same time.
type crowd struct {
	t       *testing.T
	x, y    *point
	e       *EVD
	cnos    [2]*CNO
	written []atomic.Bool // by cookie: the completion was taken
	said    []atomic.Bool // by number: the software event was taken
	left    atomic.Int64
	end     time.Time
}

// take checks an event and counts it.
func (c *crowd) take(ev *Event) {
	seen := c.said
	var i int
	switch ev.Number {
	case EventSoftware:
		i = ev.Software.(int)
	case EventDTOCompletion:
		i, seen = int(ev.Cookie), c.written
		if ev.Status != DTOSuccess {
			c.t.Errorf("completion %d: %v", i, ev.Status)
		}
	default:
		c.t.Errorf("got %v", ev.Number)
		return
	}
	if seen[i].Swap(true) {
		c.t.Errorf("%v %d came twice", ev.Number, i)
	}
	c.left.Add(-1)
}

// going reports whether events are missing and the time limit has not passed.
func (c *crowd) going() bool { return c.left.Load() > 0 && time.Now().Before(c.end) }

// legal fails the test if err is not nil and not one of the given errors.
func (c *crowd) legal(err error, some ...error) {
	for _, s := range some {
		if errors.Is(err, s) {
			return
		}
	}
	if err != nil {
		c.t.Error(err)
	}
}

func (c *crowd) write(from, n int) {
	for i := from; i < from+n && time.Now().Before(c.end); {
		err := c.x.PostRDMAWrite(c.x.seg(0, 8), uint64(i), c.y.lmr.Remote(0, 8), 0)
		if err == nil {
			i++
			continue
		}
		c.legal(err, ErrInsufficientResources)
		runtime.Gosched()
	}
}

func (c *crowd) say(from, n int) {
	for i := from; i < from+n; i++ {
		c.legal(c.e.PostSE(i))
		runtime.Gosched()
	}
}

func (c *crowd) wait() {
	for c.going() {
		var ev Event
		if _, err := c.e.Wait(100*time.Microsecond, 1, &ev); err == nil {
			c.take(&ev)
		} else {
			c.legal(err, ErrTimeoutExpired, ErrInvalidState)
		}
	}
}

func (c *crowd) dequeue() {
	for c.going() {
		var ev Event
		if err := c.e.Dequeue(&ev); err == nil {
			c.take(&ev)
		} else {
			c.legal(err, ErrQueueEmpty, ErrInvalidState)
			runtime.Gosched()
		}
	}
}

// listen waits on a CNO and takes the events of the EVDs that it returns.
func (c *crowd) listen(cno *CNO) {
	for c.going() {
		e, err := cno.Wait(time.Millisecond)
		c.legal(err, ErrQueueEmpty)
		var ev Event
		for e == c.e && e.Dequeue(&ev) == nil {
			c.take(&ev)
		}
	}
}

// change calls f, which modifies the objects, in a loop while the other goroutines use the objects.
func (c *crowd) change(f func(i int)) {
	for i := 0; c.going(); i++ {
		f(i)
		runtime.Gosched()
	}
}

// passing creates a dispatcher with a CNO, and frees the dispatcher while a goroutine waits on the CNO.
func (c *crowd) passing(int) {
	e, err := c.x.host.ia.CreateEVD(1, c.cnos[1], EVDSoftware)
	c.legal(err)
	c.legal(e.PostSE(0))
	c.legal(e.Free())
	c.legal(c.cnos[0].ModifyAgent(func(*EVD) {}))
}

func (c *crowd) busy(int) {
	if !errors.Is(c.e.Free(), ErrInvalidState) {
		c.t.Error("a dispatcher in use was freed")
	}
	c.legal(c.cnos[1].Free(), ErrInvalidState)
	_, err := c.e.Query()
	c.legal(err)
}

// TestCrowd: sixteen goroutines use one endpoint, one dispatcher and one CNO, while other goroutines change these
// objects. No event is lost or delivered twice, and no goroutine hangs. Closing the adapter ends every wait.
func TestCrowd(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		const writes, words = 300, 200 // of each goroutine
		a, b := newHosts(t, n, Options{})
		c := &crowd{t: t, x: a.point(nil), y: b.point(nil), end: time.Now().Add(patience),
			written: make([]atomic.Bool, 4*writes), said: make([]atomic.Bool, 2*words)}
		c.left.Store(4*writes + 2*words)
		for i := range c.cnos {
			c.cnos[i] = must(a.ia.CreateCNO(nil))(t)
		}
		c.e = must(a.ia.CreateEVD(4096, c.cnos[0], EVDDTO|EVDSoftware))(t)
		keep := must(a.ia.CreateEVD(1, c.cnos[1], EVDSoftware))(t) // keeps Free of another EVD from releasing the waiters
		c.x.rebuild(c.x.recv, c.e, nil)
		join(c.x, c.y)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { c.write(i*writes, writes) })
		}
		for i := range 2 {
			wg.Go(func() { c.say(i*words, words) })
			wg.Go(c.wait)
			wg.Go(c.dequeue)
			wg.Go(func() { c.listen(c.cnos[i]) })
		}
		for _, f := range []func(int){
			func(i int) {
				c.legal(c.e.Disable())
				c.legal(c.e.ModifyCNO([]*CNO{c.cnos[0], c.cnos[1], nil}[i%3]))
				c.legal(c.e.Enable())
			},
			func(int) {
				c.legal(c.e.SetUnwaitable())
				c.legal(c.e.ClearUnwaitable())
				c.legal(c.e.Resize(4096+int(c.left.Load())), ErrInvalidState)
			},
			c.passing, c.busy,
		} {
			wg.Go(func() { c.change(f) })
		}
		wg.Wait()
		if left := c.left.Load(); left != 0 {
			t.Errorf("%d events did not come", left)
		}
		expectNoEvent(t, c.e, a.ia.AsyncEVD())
		ok(t, keep.usable())
		c.close()
	})
}

// close closes the adapter while goroutines wait.
func (c *crowd) close() {
	t := c.t
	got := waits(t, c.e, 1)
	must(c.cnos[0].Trigger())(t)
	must(c.cnos[1].Trigger())(t)
	some, others := cnoWaits(t, c.cnos[0], 4), cnoWaits(t, c.cnos[1], 4)
	ok(t, c.x.host.ia.Close())
	wants(t, "waiter", result(t, got).err, ErrAbort)
	for range 4 {
		for _, ch := range []<-chan cnoWaited{some, others} {
			if w := result(t, ch); w.evd != nil || w.err != nil {
				t.Errorf("got %p, %v", w.evd, w.err)
			}
		}
	}
}
