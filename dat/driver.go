package dat

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// Tunables of progress.
const (
	// lookInterval is how often the background owner looks whether callers still drive the engine; while they do, it
	// grows to lookMost within 120 ms. A look takes a spinning caller its core for some 30 µs where no other is idle: with one
	// each millisecond at both ends the p99 of a round trip is 46 µs, with one in 4, 8 and 16 ms 34, 19 and 14 µs
	// (datbench --op send --metric lat, medians of 7). Callers who go to sleep do not wait for it, they hand over.
	lookInterval = time.Millisecond
	lookMost     = 8 * time.Millisecond
	// idleSpin is how long the background owner polls on after the last packet before it sleeps.
	idleSpin = 20 * time.Microsecond
	// vainPolls is after how many polls that found nothing a caller's thread lets others run: some 10 µs.
	// On a host that is busy one of them is the kernel's ksoftirqd, which has the packets and has to wait for
	// a caller that spins: with 16 others for two cores a stream of 64-byte messages reaches 0.2 to 0.6 M/s
	// instead of 0.001 (BenchmarkStreamSend64). With a core to itself it costs 0.2 µs.
	vainPolls = 64
	// closeLinger bounds how long closing an adapter waits for peers to confirm.
	closeLinger = 200 * time.Millisecond
)

var started = time.Now()

// clock is the engines' time. One call costs about 30 ns.
func clock() wire.Time { return wire.Time(time.Since(started)) }

// driver runs one engine: in the calls of whoever waits or posts, and in a goroutine of its own when
// nobody does.
type driver struct {
	eng  *wire.Engine
	link link.Link

	polls  uint64 // by callers that will be back; written by the engine's owner
	vain   int    // polls by callers in a row that found nothing; written by the engine's owner
	asleep atomic.Bool
	closed atomic.Bool
	hand   chan struct{} // a caller goes to sleep: take over
	stop   chan struct{}
	done   chan struct{}
}

func newDriver(h *wire.Host, l link.Link) (*driver, error) {
	eng, err := h.NewEngine(l, clock())
	if err != nil {
		return nil, err
	}
	return &driver{eng: eng, link: l, hand: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{})}, nil
}

// poll drives the engine once if nobody else does. It reports whether it did so and whether there
// was something to do.
func (d *driver) poll(now wire.Time) (owned, busy bool) {
	if !d.eng.TryOwn() {
		return false, false
	}
	d.polls++
	busy = d.eng.Poll(now)
	if d.asleep.Load() && (busy || d.eng.Next() <= now) {
		d.rouse()
	}
	yield := d.inVain(busy)
	d.disown()
	if yield {
		yieldThread()
	}
	return true, busy
}

// inVain counts polls that find nothing and reports when the thread should let others run.
func (d *driver) inVain(busy bool) bool {
	if busy {
		d.vain = 0
		return false
	}
	d.vain++
	return d.vain%vainPolls == 0
}

// rouse gets the background owner out of its sleep, since deadlines may be nearer than it knows.
func (d *driver) rouse() {
	if d.asleep.Load() && d.asleep.Swap(false) {
		d.link.Wake()
	}
}

// disown gives the engine up and does what others asked for while it was owned. It reports whether that was
// something.
func (d *driver) disown() (polled bool) {
	for d.eng.Disown() {
		if !d.eng.TryOwn() {
			return polled // whoever has it now sees to it
		}
		d.eng.Poll(clock())
		d.rouse()
		polled = true
	}
	return polled
}

// kick has the engine look at what was posted on c, at once if nobody is driving it.
func (d *driver) kick(c *wire.Conn) {
	if !d.eng.TryOwn() {
		d.eng.Ring(c)
		if !d.eng.TryOwn() {
			return // its owner looks when it lets go
		}
		d.eng.Poll(clock())
		d.rouse()
		d.disown()
		return
	}
	if d.asleep.Load() { // the engine's time is old, and a deadline may become nearer than it was
		d.eng.Poll(clock())
		d.rouse()
	}
	if poll, active := d.eng.Kick(c); poll {
		if active {
			d.polls++ // a caller that takes no events may look for nothing but memory that a peer writes
		}
		d.eng.Poll(clock())
		d.rouse()
	}
	d.disown()
}

// own waits for the ownership of the engine; false when it is closed.
func (d *driver) own() bool {
	for !d.eng.TryOwn() {
		if d.closed.Load() {
			return false
		}
		runtime.Gosched()
	}
	return true
}

// do runs f with the engine owned, and polls it after. ErrInvalidHandle when the adapter is closed.
func (d *driver) do(f func(*wire.Engine) error) error {
	if !d.own() {
		return ErrInvalidHandle
	}
	d.eng.Poll(clock()) // f may end the connection of what was posted
	err := f(d.eng)
	d.eng.Poll(clock())
	d.rouse()
	d.disown()
	return err
}

// halted runs f with every engine of the adapter owned. ErrInvalidHandle when the adapter is closed.
func (a *adapter) halted(f func() error) error {
	for i, d := range a.drivers {
		if !d.own() {
			a.resume(i)
			return ErrInvalidHandle
		}
	}
	defer a.resume(len(a.drivers))
	return f()
}

// resume gives the first n engines up.
func (a *adapter) resume(n int) {
	for _, d := range a.drivers[:n] {
		d.disown()
	}
}

// barrier returns when whoever owned the engine at the call has let go of it.
func (d *driver) barrier() {
	if d.own() {
		d.disown()
	}
}

// handOver tells the background owner that a caller stops driving.
func (d *driver) handOver() {
	select {
	case d.hand <- struct{}{}:
	default:
	}
}

// run is the background owner.
func (d *driver) run() {
	defer close(d.done)
	look, pause := time.NewTimer(lookInterval), lookInterval
	defer look.Stop()
	var seen uint64
	busyAt := clock()
	for {
		now := clock()
		active, busy, next := d.turn(now, &seen)
		switch {
		case active:
			look.Reset(pause)
			pause = min(pause+pause/16, lookMost)
			select {
			case <-d.stop:
				return
			case <-d.hand:
				busyAt = now
				d.forget(&seen)
			case <-look.C:
			}
			continue
		case busy:
			busyAt, pause = now, lookInterval
			runtime.Gosched() // who waits for what just arrived goes first
		case now.Sub(busyAt) < idleSpin:
		default:
			pause = lookInterval
			d.sleep(next)
		}
		select {
		case <-d.stop:
			return
		default:
		}
	}
}

// forget makes the next turn take the engine for not driven by callers.
func (d *driver) forget(seen *uint64) {
	d.eng.Own()
	*seen = d.polls
	d.disown()
}

// turn polls the engine unless callers have polled it since the last turn, and returns when it is
// to be polled next.
func (d *driver) turn(now wire.Time, seen *uint64) (active, busy bool, next wire.Time) {
	if !d.eng.TryOwn() {
		return true, true, now
	}
	if active = d.polls != *seen; active {
		*seen = d.polls
	} else {
		busy = d.eng.Poll(now)
		next = d.eng.Next()
		d.asleep.Store(!busy && next > now) // before the last look: see sleep
	}
	if d.disown() { // there may be a deadline before next
		d.asleep.Store(false)
		busy = true
	}
	return active, busy, next
}

// sleep waits for a packet, a deadline or a wake-up. A caller that makes the deadline nearer after
// turn looked sees asleep and wakes the link, and a wake-up that comes before Wait is not lost.
func (d *driver) sleep(next wire.Time) {
	if wait := next.Sub(clock()); wait > 0 {
		d.link.Wait(wait)
	}
	d.asleep.Store(false)
}

// close stops the background owner and ends every connection, giving peers some time to confirm. It
// keeps the ownership, so that calls which are still on their way do not reach a closed link.
func (d *driver) close() {
	close(d.stop)
	d.link.Wake()
	<-d.done
	d.eng.Own()
	for end := clock().Add(closeLinger); d.eng.Connections() > 0; {
		now := clock()
		if now > end {
			break
		}
		if !d.eng.Poll(now) {
			d.link.Wait(min(max(d.eng.Next().Sub(now), 0), end.Sub(now)))
		}
	}
	d.eng.Close()
	d.closed.Store(true)
}
