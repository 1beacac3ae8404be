package dat

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestEVDArguments(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{})
	for _, tc := range []struct {
		qlen  int
		flags EVDFlags
		want  error
	}{
		{0, EVDDTO, ErrInvalidParameter}, {-1, EVDDTO, ErrInvalidParameter},
		{maxEVDQLen + 1, EVDDTO, ErrInsufficientResources},
		{1, 0, ErrInvalidParameter}, {1, 0x8000, ErrInvalidParameter},
	} {
		_, err := h.ia.CreateEVD(tc.qlen, nil, tc.flags)
		wants(t, "create", err, tc.want)
	}
	for _, qlen := range []int{1, 2, 3, 100} {
		e := must(h.ia.CreateEVD(qlen, nil, EVDDTO))(t)
		if e.QLen() < qlen {
			t.Errorf("queue length %d, want at least %d", e.QLen(), qlen)
		}
		var ev Event
		for _, threshold := range []int{0, -1, e.QLen() + 1} {
			_, err := e.Wait(0, threshold, &ev)
			wants(t, "threshold", err, ErrInvalidParameter)
		}
	}
}

func TestDequeueAndWaitEmpty(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		var ev Event
		wants(t, "dequeue", x.recv.Dequeue(&ev), ErrQueueEmpty)
		for _, d := range []time.Duration{0, time.Microsecond, 30 * time.Millisecond} {
			start := time.Now()
			more, err := x.recv.Wait(d, 1, &ev)
			wants(t, "wait", err, ErrTimeoutExpired)
			if took := time.Since(start); more != 0 || took < d || took > d+time.Second {
				t.Errorf("timeout %v: took %v, %d more", d, took, more)
			}
		}
		proves(x, y)
	})
}

// TestThreshold: a Wait with a threshold of n returns only when n events are queued. If the Wait times out, it takes no
// event, and returns the number of queued events.
func TestThreshold(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		for i := range uint64(4) {
			ok(t, y.PostRecv(y.seg(0, 8), i, 0))
		}
		var ev Event
		for i := range uint64(3) {
			ok(t, x.PostSend(x.seg(0, 8), i, 0))
			x.done(x.request, i, DTOSend, DTOSuccess, 8)
		}
		more, err := y.recv.Wait(20*time.Millisecond, 4, &ev)
		wants(t, "three of four", err, ErrTimeoutExpired)
		if more != 3 {
			t.Errorf("%d events are there, want 3", more)
		}
		got := make(chan error, 1)
		go func() {
			var err error
			more, err = y.recv.Wait(patience, 4, &ev)
			got <- err
		}()
		parked(t, y.recv)
		ok(t, x.PostSend(x.seg(0, 8), 3, 0))
		ok(t, <-got)
		if more != 3 || ev.Cookie != 0 {
			t.Errorf("took event %d, %d left; want the first of four", ev.Cookie, more)
		}
		for want := 2; want >= 0; want-- {
			if more, err := y.recv.Wait(0, 1, &ev); err != nil || more != want || ev.Cookie != uint64(3-want) {
				t.Errorf("event %d, %d left, %v; want %d left", ev.Cookie, more, err, want)
			}
		}
	})
}

// parked waits until the waiter of a dispatcher sleeps.
func parked(t testing.TB, e *EVD) {
	t.Helper()
	eventually(t, "sleep of the waiter", e.armed.Load)
}

// TestSleepingWaiter: while one goroutine is inside Wait, other calls of Wait, Dequeue and Free return an error. No
// other goroutine polls the waiter's adapter, so the background owner must wake the waiter.
func TestSleepingWaiter(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		got := make(chan error, 1)
		var first, ev Event
		go func() {
			_, err := y.recv.Wait(-1, 1, &first)
			got <- err
		}()
		parked(t, y.recv)
		_, err := y.recv.Wait(0, 1, &ev)
		wants(t, "second waiter", err, ErrInvalidState)
		wants(t, "dequeue during wait", y.recv.Dequeue(&ev), ErrInvalidState)
		wants(t, "free during wait", y.recv.Free(), ErrInvalidState)
		asleep(t, b)
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		ok(t, <-got)
		if first.Cookie != 1 || first.Status != DTOSuccess {
			t.Errorf("got %+v", first)
		}
		wants(t, "dequeue after wait", y.recv.Dequeue(&ev), ErrQueueEmpty)
		x.done(x.request, 2, DTOSend, DTOSuccess, 8)
	})
}

// If the target of an RDMA operation makes no calls, its background owner serves the operation.
func TestPassiveTarget(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		fillRandom(x.mem, 5)
		for i := range uint64(50) {
			asleep(t, b)
			ok(t, x.PostRDMAWrite(x.seg(0, 20000), i, y.lmr.Remote(0, 20000), 0))
			ok(t, x.PostRDMARead(x.seg(30000, 20000), i, y.lmr.Remote(0, 20000), 0))
			x.done(x.request, i, DTORDMAWrite, DTOSuccess, 20000)
			x.done(x.request, i, DTORDMARead, DTOSuccess, 20000)
		}
		same(t, x.mem[30000:50000], x.mem[:20000])
		if y.recv.Len()+y.request.Len()+y.connect.Len() != 0 {
			t.Error("the target got an event")
		}
	})
}

// TestOverflow: only events for which the dispatcher has no room are lost. An asynchronous event names the dispatcher
// that lost these events.
func TestOverflow(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, v := pair(a, b, nil)
		x := a.point(nil)
		y := b.pointWith(nil, pointMem, 4)
		join(x, y)
		for i := range uint64(6) {
			ok(t, y.PostRecv(y.seg(int(i)*8, 8), i, 0))
			ok(t, x.PostSend(x.seg(0, 8), i, 0))
		}
		for i := range uint64(6) {
			x.done(x.request, i, DTOSend, DTOSuccess, 8)
		}
		ev := await(t, b.ia.AsyncEVD(), EventAsyncEVDOverflow)
		if ev.Source != y.recv || ev.EVD != b.ia.AsyncEVD() {
			t.Error("the event names another dispatcher")
		}
		for i := range uint64(4) {
			y.done(y.recv, i, DTOReceive, DTOSuccess, 8)
		}
		expectNoEvent(t, y.recv, a.ia.AsyncEVD())
		proves(x, y)
		proves(u, v)
	})
}

// TestManyPosters: eight goroutines post on one endpoint and one goroutine waits. No completion is lost or delivered
// twice, and the completions of each goroutine arrive in its posting order.
func TestManyPosters(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		const posters, each = 8, 1500
		a, b := newHosts(t, n, Options{})
		attr := DefaultEPAttr()
		attr.MaxRequestDTOs = 64 // so that posters meet a full queue
		x, y := a.pointWith(&attr, pointMem, posters*each), b.pointWith(nil, pointMem, posters*each)
		join(x, y)
		var wg sync.WaitGroup
		for p := range uint64(posters) {
			wg.Go(func() {
				for i := uint64(0); i < each; {
					var err error
					if cookie := p<<32 | i; p%2 == 0 {
						err = x.PostRDMAWrite(x.seg(0, 64), cookie, y.lmr.Remote(int(p)*64, 64), 0)
					} else {
						err = x.PostSend(x.seg(64, 100), cookie, 0)
					}
					switch {
					case err == nil:
						i++
					case errors.Is(err, ErrInsufficientResources):
						runtime.Gosched()
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		const messages = posters / 2 * each
		wg.Go(func() { receiveAll(t, y, messages) })
		var next [posters]uint64
		for range posters * each {
			ev := await(t, x.request, EventDTOCompletion)
			p, i := ev.Cookie>>32, ev.Cookie&0xffffffff
			if ev.Status != DTOSuccess || i != next[p] {
				t.Fatalf("poster %d: completion %d %v, want %d", p, i, ev.Status, next[p])
			}
			next[p]++
		}
		wg.Wait()
		x.still()
		y.still()
		expectNoEvent(t, a.ia.AsyncEVD(), b.ia.AsyncEVD())
	})
}

// receiveAll receives a number of messages. It keeps at most 200 receives posted.
func receiveAll(t *testing.T, y *point, messages int) {
	posted := 0
	for got := range messages {
		for posted < messages && posted < got+200 {
			if err := y.PostRecv(y.seg(32768, 128), uint64(posted), 0); err != nil {
				t.Error(err)
				return
			}
			posted++
		}
		var ev Event
		if _, err := y.recv.Wait(patience, 1, &ev); err != nil || ev.Cookie != uint64(got) || ev.Status != DTOSuccess {
			t.Errorf("receive %d: %d %v, %v", got, ev.Cookie, ev.Status, err)
			return
		}
	}
}

// TestWaitAgainstDequeue: several goroutines call Wait and Dequeue on one dispatcher. Each event goes to exactly one
// goroutine. Only two errors are returned: one if the queue is empty, the other if another goroutine is inside Wait.
func TestWaitAgainstDequeue(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		const count = 4000
		a, b := newHosts(t, n, Options{})
		x, y := a.pointWith(nil, pointMem, count), b.point(nil)
		join(x, y)
		var taken atomic.Int64
		end := time.Now().Add(patience)
		var seen [count]atomic.Bool
		take := func(ev *Event) {
			if seen[ev.Cookie].Swap(true) {
				t.Errorf("event %d twice", ev.Cookie)
			}
			taken.Add(1)
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				var ev Event
				for taken.Load() < count && time.Now().Before(end) {
					switch err := x.request.Dequeue(&ev); err {
					case nil:
						take(&ev)
					case ErrQueueEmpty, ErrInvalidState:
						runtime.Gosched()
					default:
						t.Error(err)
						return
					}
				}
			})
			wg.Go(func() {
				var ev Event
				for taken.Load() < count && time.Now().Before(end) {
					switch _, err := x.request.Wait(100*time.Microsecond, 1, &ev); err {
					case nil:
						take(&ev)
					case ErrTimeoutExpired, ErrInvalidState:
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		for i := uint64(0); i < count; {
			if err := x.PostRDMAWrite(x.seg(0, 8), i, y.lmr.Remote(0, 8), 0); err == nil {
				i++
			} else if !errors.Is(err, ErrInsufficientResources) {
				t.Fatal(err)
			} else {
				runtime.Gosched()
			}
		}
		wg.Wait()
		if got := taken.Load(); got != count {
			t.Errorf("%d events, want %d", got, count)
		}
	})
}
