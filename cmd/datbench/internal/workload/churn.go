package workload

import (
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// heap is live memory that consists of small objects. A goroutine replaces objects continuously, so that the garbage
// collector always runs.
type heap struct {
	lists      []*object
	filled     atomic.Bool
	stop, done chan struct{}
}

// object is one cache line with a pointer that the collector must follow.
type object struct {
	next *object
	_    [cacheLine - 8]byte
}

// listLength is the number of objects that are replaced together.
const listLength = 16

func newHeap(bytes int64) *heap {
	h := &heap{lists: make([]*object, max(bytes/(listLength*cacheLine), 1)), stop: make(chan struct{}), done: make(chan struct{})}
	go h.churn()
	return h
}

// churn fills the heap, then replaces lists of objects in it.
func (h *heap) churn() {
	defer close(h.done)
	for i := range h.lists {
		if h.stopped() {
			return
		}
		h.lists[i] = newList()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(churnPercent))
	h.filled.Store(true)
	for !h.stopped() {
		for range churnBatch {
			h.lists[rand.IntN(len(h.lists))] = newList()
		}
		time.Sleep(churnPause)
	}
}

func (h *heap) stopped() bool {
	select {
	case <-h.stop:
		return true
	default:
		return false
	}
}

func newList() (first *object) {
	for range listLength {
		first = &object{next: first}
	}
	return first
}

// free stops the goroutine and returns the memory to the kernel before the next row is measured.
func (h *heap) free() {
	if h == nil {
		return
	}
	close(h.stop)
	<-h.done
	h.lists = nil
	debug.FreeOSMemory()
}

// churn fills the heap of a row, and waits for the target's message that its heap is filled too.
func (c *Conn) churn() error {
	if c.row.Churn == 0 {
		return nil
	}
	there := false
	c.onReceive = func(slot, _ int) error {
		there = true
		return c.receive(slot)
	}
	c.churnHeap = newHeap(c.row.Churn)
	err := c.pollUntil(func() bool { return there && c.churnHeap.filled.Load() })
	c.onReceive = nil
	return err
}

// churnToo is the target's side of churn.
func (c *Conn) churnToo() error {
	if c.row.Churn == 0 {
		return nil
	}
	c.churnHeap = newHeap(c.row.Churn)
	if err := c.pollUntil(c.churnHeap.filled.Load); err != nil {
		return err
	}
	if err := c.note(); err != nil {
		return err
	}
	return c.pollUntil(func() bool { return c.done == c.posted })
}
