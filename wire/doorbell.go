package wire

import "sync"

// doorbells are the connections on which something was posted while somebody else owned the engine. Posters ring under the
// mutex; the owner answers.
type doorbells struct {
	bellMu  sync.Mutex
	ringing []*Conn
	taking  []*Conn // whose posts are being taken in, the owner's
}

// Ring tells the engine, from outside, that something was posted on c. The owner of the engine, or the next one, takes it
// in.
func (e *Engine) Ring(c *Conn) {
	if !c.rung.CompareAndSwap(false, true) {
		return
	}
	e.bellMu.Lock()
	e.ringing = append(e.ringing, c)
	e.bellMu.Unlock()
	e.rings.Add(1)
}

// answerDoorbells takes in what was posted. A doorbell that rings meanwhile is for the next Poll: a connection that gets its
// receive of a shared queue rings for the next one that waits.
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
