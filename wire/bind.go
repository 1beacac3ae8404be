package wire

import (
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// PostBind queues a bind of window win to the n bytes of region r at address addr. It returns the new remote key. When
// the bind completes, the new key is valid, the old key of the window is invalid, and no engine accesses memory with
// the old key. If n is 0, the bind unbinds the window and ignores r.
//
// Requests posted later wait for the bind. A window may give rights that the region itself does not give to peers. But
// a window with RemoteRead needs a region with LocalRead or LocalWrite, and a window with RemoteWrite needs a region
// with LocalWrite.
func (c *Conn) PostBind(win *Window, r *Region, addr uint64, n uint32, rights Rights, cookie uint64, flags WorkFlags) (key uint32, err error) {
	if win.zone != c.zone.Load() {
		return 0, ErrZone
	}
	w := work{cookie: cookie, op: OpBind, flags: flags}
	if n > 0 {
		if err := r.mayBind(win.zone, addr, n, rights); err != nil {
			return 0, err
		}
		only := c
		if !win.singleConn {
			only = nil
		}
		if w.key, key, err = c.host.reserve(r, addr, n, rights, only); err != nil {
			return 0, err
		}
	}
	if err := c.postBind(&w, win); err != nil {
		if w.key != 0 {
			c.host.discard(w.key)
		}
		return 0, err
	}
	return key, nil
}

// mayBind returns an error if a window on the range [addr, addr+n) of the region may not give these rights.
func (r *Region) mayBind(zone uint32, addr uint64, n uint32, rights Rights) error {
	switch {
	case r.dead.Load():
		return ErrBadKey
	case r.zone != zone:
		return ErrZone
	case rights&RemoteRead != 0 && r.rights&(LocalRead|LocalWrite) == 0,
		rights&RemoteWrite != 0 && r.rights&LocalWrite == 0:
		return ErrRights
	}
	if _, ok := r.slice(addr, n); !ok {
		return ErrBounds
	}
	return nil
}

// postBind queues a bind, if the state of the connection allows it.
func (c *Conn) postBind(w *work, win *Window) error {
	q := &c.sq
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := c.mayRequest(OpBind); err != nil {
		return err
	}
	if q.full() {
		return ErrQueueFull
	}
	if q.wins == nil {
		q.wins = make([]*Window, len(q.slots))
	}
	q.wins[q.postedCount.Load()&q.mask] = win
	return q.post(w, nil)
}

// window returns the window of request n, or nil if the request is not a bind.
func (r *workRing) window(n seq.Num) *Window {
	if r.at(n).op != OpBind {
		return nil
	}
	return r.wins[uint32(n)&r.mask]
}

// atBind reports whether the next request to send is a bind that may execute now. The congestion window does not limit
// a bind, because a bind sends nothing.
func (c *Conn) atBind() bool {
	q := &c.sq
	if !q.binds || q.nextPos.Op == q.counted || q.nextPos.Off != 0 {
		return false
	}
	w := q.at(q.nextPos.Op)
	return w.op == OpBind && c.waitsFor(w) == sendPacket
}

// bindNext executes the next request if it is a bind. The bind completes when all earlier packets are acknowledged and
// no other engine uses the old key of the window.
func (c *Conn) bindNext() bool {
	if !c.atBind() {
		return false
	}
	q := &c.sq
	if !c.bindWindow(q.nextPos.Op, q.at(q.nextPos.Op)) {
		c.failRequest(q.nextPos.Op, StatusBindFailed)
		c.breakOnFault(proto.ReasonLocal, 0, 0)
		return true
	}
	if q.oldKey != 0 {
		return true // endWaits schedules the connection
	}
	q.nextPos.Op++
	if c.sent.Empty() {
		q.ackedPos = q.nextPos
		c.completeRequests()
	} else {
		c.sent.At(c.sent.Nxt - 1).ReqEnd = q.nextPos
	}
	return true
}

// bindWindow executes a bind, unless it was executed before. It reports false if the window was freed.
func (c *Conn) bindWindow(n seq.Num, w *work) bool {
	if w.executed {
		return true
	}
	win, h := c.sq.window(n), c.host
	w.executed = true
	if w.key != 0 {
		h.regions.binding(w.key).key.Store(h.keys.Encrypt(w.key))
	}
	for old := win.bound.Load(); old != windowFreed; old = win.bound.Load() {
		if win.bound.CompareAndSwap(old, w.key) {
			if h.unbind(old); old != 0 && len(h.engines) > 1 { // another engine may use a key that was already invalid
				c.awaitOldKey(h.keys.Encrypt(old))
			}
			return true
		}
	}
	return false
}

// undoBind reverts a bind that fails. Its key is invalid afterwards. The caller then pushes the completion of the bind,
// which waits until no other engine uses that key or the key that the bind has replaced.
func (c *Conn) undoBind(w *work) {
	if w.op != OpBind {
		return
	}
	if w.executed {
		c.awaitKey(c.sq.oldKey)
		c.sq.oldKey = 0
	}
	switch {
	case w.key == 0:
	case w.executed:
		c.host.unbind(w.key)
		c.awaitKey(c.host.keys.Encrypt(w.key))
	default:
		c.host.discard(w.key)
	}
	w.key = 0
}
