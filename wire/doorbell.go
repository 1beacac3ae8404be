package wire

import "sync"

// doorbells lists the connections with posts that came while another goroutine owned the engine. Posters append under
// the mutex; the owner takes the whole list.
type doorbells struct {
	bellMu  sync.Mutex
	ringing []*Conn
	taking  []*Conn // list that the owner is working on
}

// Ring tells the engine that something was posted on c. The caller need not own the engine: the current owner, or the
// next one, takes in the post.
func (e *Engine) Ring(c *Conn) {
	if !c.rung.CompareAndSwap(false, true) {
		return
	}
	e.bellMu.Lock()
	e.ringing = append(e.ringing, c)
	e.bellMu.Unlock()
	e.rings.Add(1)
}

// answerDoorbells takes in the posts of the connections in the list. A connection that rings meanwhile waits for the
// next Poll, so that the work of this Poll is bounded. That happens when a connection takes its receive of a shared
// queue: it rings for the next connection in line.
func (e *Engine) answerDoorbells() {
	e.bellMu.Lock()
	e.taking, e.ringing = e.ringing, e.taking
	e.bellMu.Unlock()
	e.rings.Add(int32(-len(e.taking)))
	for i, c := range e.taking {
		c.rung.Store(false)
		e.takePosts(c)
		e.taking[i] = nil
	}
	e.taking = e.taking[:0]
}
