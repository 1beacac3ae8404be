package wire

import (
	"sync"
	"testing"
)

// testQueue is a queue with an engine that only publishes.
type testQueue struct {
	*Queue
	e           *Engine
	heard, lost int
}

func newTestQueue(n int) *testQueue {
	tq := &testQueue{e: &Engine{}}
	tq.Queue = NewQueue(n, func() { tq.heard++ }, func() { tq.lost++ })
	return tq
}

// put pushes completions with cookies in [from, to) and publishes them.
func (q *testQueue) put(from, to int, c Completion) {
	for i := from; i < to; i++ {
		c.Cookie = uint64(i)
		q.push(q.e, &c)
	}
	q.e.publish()
}

func (q *testQueue) expect(t *testing.T, from, to int) {
	t.Helper()
	var c Completion
	for i := from; i < to; i++ {
		if !q.Pop(&c) || c.Cookie != uint64(i) {
			t.Fatalf("got %d, want %d", c.Cookie, i)
		}
	}
}

// The ring must not keep the connection of a completion alive after the completion was popped, whatever its kind is.
func TestQueueForgetsConnections(t *testing.T) {
	for _, c := range []Completion{{}, {Status: StatusFlushed}, {Kind: KindDisconnected}} {
		q := newTestQueue(8)
		c.Conn, c.Window = new(Conn), new(Window)
		q.put(0, 8, c)
		q.expect(t, 0, 8)
		for i := range q.ring {
			if slot := &q.ring[i]; slot.Conn != nil || slot.Window != nil {
				t.Errorf("kind %v, status %v: the ring still refers to the connection", c.Kind, c.Status)
				break
			}
		}
	}
}

// The right completions must be notifications, and cause the right calls of notify.
func TestQueueNotice(t *testing.T) {
	for _, tc := range []struct {
		name string
		c    Completion
		want bool
	}{
		{"plain", Completion{}, true},
		{"solicited", Completion{Flags: Solicited}, true},
		{"unsignalled", Completion{Flags: Unsignalled}, false},
		{"unsignalled, suppressed", Completion{Flags: Unsignalled | Suppress}, false},
		{"unsignalled, failed", Completion{Flags: Unsignalled, Status: StatusFlushed}, true},
		{"connection event", Completion{Kind: KindDisconnected}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := newTestQueue(8)
			before := q.Notice()
			q.put(0, 1, tc.c)
			if got := q.Notice() != before; got != tc.want || q.heard != 0 {
				t.Errorf("notification: %v, told %d times while nobody listened", got, q.heard)
			}
			q.Listen(true)
			q.put(1, 3, tc.c)
			if want := map[bool]int{true: 1}[tc.want]; q.heard != want {
				t.Errorf("told %d times, want %d", q.heard, want)
			}
			q.Listen(false)
			q.put(3, 4, Completion{})
			if q.Len() != 4 || q.heard > 1 {
				t.Errorf("%d completions, told %d times", q.Len(), q.heard)
			}
		})
	}
}

// A lost completion must notify, because the consumer may be waiting for it.
func TestQueueOverflowNotifies(t *testing.T) {
	q := newTestQueue(3)
	q.Listen(true)
	q.put(0, 3, Completion{Flags: Unsignalled})
	if q.heard != 0 || q.lost != 0 {
		t.Errorf("told %d times, %d lost", q.heard, q.lost)
	}
	q.put(3, 4, Completion{Flags: Unsignalled})
	if q.heard != 1 || q.lost != 1 || q.Len() != 3 {
		t.Errorf("told %d times, %d lost, %d there", q.heard, q.lost, q.Len())
	}
	q.expect(t, 0, 3)
}

// consuming must be true while completions are popped and minLeft or more are left.
func TestQueueConsuming(t *testing.T) {
	var none *Queue
	if none.isConsumed() || none.consumedSinceCheck() {
		t.Error("no queue is consumed")
	}
	q := newTestQueue(2 * minLeft)
	q.put(0, minLeft+2, Completion{})
	want := func(what string, consuming bool) {
		t.Helper()
		if got := q.isConsumed(); got != consuming {
			t.Errorf("%s: consuming is %v", what, got)
		}
	}
	want("nothing was taken", false)
	q.expect(t, 0, 1)
	want("one was taken", true)
	want("it stays so", true)
	if !q.consumedSinceCheck() {
		t.Error("nothing was taken up to the call")
	}
	want("nothing was taken since the call", false)
	if q.consumedSinceCheck() {
		t.Error("something was taken up to the second call")
	}
	q.expect(t, 1, 2)
	want("one was taken, enough are left", true)
	q.expect(t, 2, 3)
	want("too few are left", false)
}

// A queue that is emptied must begin at ring[0] again. A queue that is not emptied must use all of its slots.
func TestQueueBegins(t *testing.T) {
	q := newTestQueue(64)
	for i := 0; i < 300; i += 3 {
		q.put(i, i+3, Completion{})
		q.expect(t, i, i+3)
	}
	for i := range q.ring {
		if used := q.ring[i].Cookie != 0; used != (i < 3) {
			t.Errorf("place %d is used: %v", i, used)
		}
	}
	q.put(300, 302, Completion{})
	for i := 300; i < 600; i += 2 {
		q.put(i+2, i+4, Completion{})
		q.expect(t, i, i+2)
	}
	for i := range q.ring {
		if q.ring[i].Cookie == 0 {
			t.Errorf("place %d was not used", i)
		}
	}
}

// Sequence numbers must wrap at 2^32, and must not change when the queue is resized.
func TestQueueResize(t *testing.T) {
	for _, start := range []uint32{0, 5, 1<<32 - 3} {
		q := newTestQueue(4)
		q.nextSeq, q.noticeSeq, q.publishedSeq, q.seenHead = start, start, start, start
		q.head.Store(start)
		q.e.dirty = append(q.e.dirty, q.Queue)
		q.e.publish()
		q.put(0, 4, Completion{})
		q.expect(t, 0, 1)
		q.Resize(6)
		q.put(4, 8, Completion{})
		if q.lost != 1 {
			t.Errorf("from %d: %d lost of 7 in 6", start, q.lost)
		}
		q.expect(t, 1, 5)
		q.Resize(2)
		q.put(7, 8, Completion{})
		if q.lost != 2 {
			t.Errorf("from %d: %d lost, want one more", start, q.lost)
		}
		q.expect(t, 5, 7)
		if q.Len() != 0 {
			t.Errorf("%d left", q.Len())
		}
	}
}

// Queues that share a capacity must together hold exactly that many completions.
func TestRoom(t *testing.T) {
	r := NewRoom(5)
	p, q := newTestQueue(5), newTestQueue(5)
	p.Share(r)
	q.Share(r)
	p.put(0, 2, Completion{})
	q.put(0, 4, Completion{})
	if p.Len() != 2 || q.Len() != 3 || q.lost != 1 {
		t.Errorf("%d and %d, %d lost", p.Len(), q.Len(), q.lost)
	}
	p.expect(t, 0, 2)
	q.put(4, 6, Completion{})
	if q.Len() != 5 || q.lost != 1 {
		t.Errorf("%d, %d lost", q.Len(), q.lost)
	}
}

func TestRoomFromManySides(t *testing.T) {
	const size, each = 7, 2000
	r := NewRoom(size)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range each {
				if r.Take() {
					if n := r.used.Load(); n < 1 || n > size {
						t.Errorf("%d in use", n)
					}
					r.Give()
				}
			}
		})
	}
	wg.Wait()
	if n := r.used.Load(); n != 0 {
		t.Errorf("%d in use at the end", n)
	}
}

// The ring must not keep a connection alive whose end the consumer has taken.
func TestQueueForgetsEndedConnections(t *testing.T) {
	q := newTestQueue(4)
	c := new(Conn)
	for _, ended := range []Completion{{Conn: c, Kind: KindBroken}, {Conn: c, Status: StatusFlushed}} {
		q.push(q.e, &ended)
		q.e.publish()
		if got := (Completion{}); !q.Pop(&got) || got.Conn != c {
			t.Fatalf("popped %+v", got)
		}
	}
	for i := range q.ring {
		if q.ring[i].Conn != nil {
			t.Errorf("place %d keeps %+v", i, q.ring[i])
		}
	}
}
