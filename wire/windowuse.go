package wire

import (
	"slices"
	"sync/atomic"
)

// windowUse makes a completion that ends the validity of a window's key wait for other engines that access memory with
// this key. It uses hazard pointers (M. Michael, IEEE TPDS 15(6), 2004):
//
//   - An engine stores the key of a window in usedKey, and then checks that the key is valid. Only after that does it
//     access the memory. The field keeps the key until the engine uses another window, or until the end of the Poll.
//   - An engine that has made a key invalid then reads usedKey of the other engines. As long as one of them has the
//     key, the connection waits (see windowWait). If none has it, none will access memory with this key again.
//
// So an engine pays only for packets that access memory through windows. If the host has one engine, it pays nothing.
type windowUse struct {
	usedKey atomic.Uint32 // key of the window that this engine may be accessing; 0: none
	waits   []*windowWait // connections of this engine that wait for other engines
}

// windowWait is the wait of one connection until other engines have stopped using invalid keys. A bind that waits stops
// the send queue (see sendQueue.oldKey). Other completions that wait are held, and so are all completions that the
// connection pushes after them, so that their order stays.
type windowWait struct {
	conn *Conn
	held []heldCompletion
}

// heldCompletion is one of three things: a completion; NoticeEnd, if notice is true; or the key that all entries after
// it wait for, if key is not 0.
type heldCompletion struct {
	queue  *Queue
	done   Completion
	notice bool
	key    uint32
}

// useWindow announces that this engine may access memory with a window's key. The key is checked after the call.
func (e *Engine) useWindow(key uint32) {
	if len(e.host.engines) > 1 && e.usedKey.Load() != key {
		e.usedKey.Store(key)
	}
}

// endWindowUse tells other engines that this engine accesses no window.
func (e *Engine) endWindowUse() {
	if e.usedKey.Load() != 0 {
		e.usedKey.Store(0)
	}
}

// usedElsewhere reports whether another engine may still access memory with a key that has become invalid.
func (e *Engine) usedElsewhere(key uint32) bool {
	for _, other := range e.host.engines {
		if other != e && key != 0 && other.usedKey.Load() == key {
			return true
		}
	}
	return false
}

// awaitKey holds the completions that the connection pushes from now on, until no other engine uses an invalid key.
func (c *Conn) awaitKey(key uint32) {
	if c.eng.usedElsewhere(key) {
		w := c.eng.beginWait(c)
		w.held = append(w.held, heldCompletion{key: key})
	}
}

// awaitOldKey makes the bind that has just replaced a key wait until no other engine uses this key. Requests after the
// bind wait too.
func (c *Conn) awaitOldKey(key uint32) {
	if c.eng.usedElsewhere(key) {
		c.sq.oldKey = key
		c.eng.beginWait(c)
	}
}

// waitOf returns the wait of a connection, or nil if the connection does not wait.
func (e *Engine) waitOf(c *Conn) *windowWait {
	for _, w := range e.waits {
		if w.conn == c {
			return w
		}
	}
	return nil
}

// beginWait returns the wait of a connection. It makes one if the connection does not wait yet.
func (e *Engine) beginWait(c *Conn) *windowWait {
	w := e.waitOf(c)
	if w == nil {
		w = &windowWait{conn: c}
		e.waits = append(e.waits, w)
	}
	return w
}

// hold appends a completion or a notice to the held completions of its connection. It reports false if the connection
// has none.
func (e *Engine) hold(c *Conn, h heldCompletion) bool {
	w := e.waitOf(c)
	if w == nil || len(w.held) == 0 {
		return false
	}
	w.held = append(w.held, h)
	return true
}

// checkWaits ends the waits for keys that no other engine uses any more.
func (e *Engine) checkWaits() {
	if len(e.waits) > 0 {
		e.endWaits(false)
	}
}

// endWaits ends the waits for keys that no other engine uses any more. If all is true, it ends every wait.
func (e *Engine) endWaits(all bool) {
	for _, w := range e.waits {
		if c := w.conn; c.sq.oldKey != 0 && (all || !e.usedElsewhere(c.sq.oldKey)) {
			c.sq.oldKey = 0
			c.schedule()
		}
		w.deliver(e, all)
	}
	e.waits = slices.DeleteFunc(e.waits, func(w *windowWait) bool { return len(w.held) == 0 && w.conn.sq.oldKey == 0 })
}

// deliver pushes the held completions up to the first key that another engine still uses. If all is true, it pushes all
// of them.
func (w *windowWait) deliver(e *Engine, all bool) {
	held := w.held
	w.held = nil // otherwise Queue.push would hold them again
	for i := range held {
		switch h := &held[i]; {
		case h.key != 0 && !all && e.usedElsewhere(h.key):
			w.held = held[i:]
			return
		case h.key != 0:
		case h.notice:
			e.publish()
			w.conn.srq.notice(NoticeEnd)
		case h.done.Kind != KindWork:
			e.publish()
			h.queue.push(e, &h.done)
			e.publish()
		default:
			h.queue.push(e, &h.done)
		}
	}
}
