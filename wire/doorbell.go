package wire

import "sync"

// A value of type doorbells has connections with new posts. A goroutine that posts, but does not own the engine, appends
// the connection to rungConns. The owner of the engine takes the whole list at once. Both hold the mutex bellMu.
type doorbells struct {
	bellMu     sync.Mutex
	rungConns  []*Conn
	takenConns []*Conn // list that the owner works on
}

// Ring tells the engine that something was posted on c. The caller need not own the engine. The owner of the engine
// takes in the post; if there is no owner now, the next owner does.
func (e *Engine) Ring(c *Conn) {
	if !c.rung.CompareAndSwap(false, true) {
		return
	}
	e.bellMu.Lock()
	e.rungConns = append(e.rungConns, c)
	e.bellMu.Unlock()
	e.rings.Add(1)
}

// answerDoorbells takes in the posts of all connections whose doorbells have rung. A doorbell that rings during the
// call waits for the next Poll, so that this Poll has bounded work. Such a doorbell may come from the call itself: a
// connection that takes a receive from a shared queue may ring the doorbell of the next connection that waits for a
// receive.
func (e *Engine) answerDoorbells() {
	e.bellMu.Lock()
	e.takenConns, e.rungConns = e.rungConns, e.takenConns
	e.bellMu.Unlock()
	e.rings.Add(int32(-len(e.takenConns)))
	for i, c := range e.takenConns {
		c.rung.Store(false)
		e.takePosts(c)
		e.takenConns[i] = nil
	}
	e.takenConns = e.takenConns[:0]
}
