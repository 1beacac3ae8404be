package wire

import (
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// PostBind queues a bind of a window to n bytes of a region, and returns the new key for peers. When the bind has
// completed, the new key is valid and the old key of the window is invalid. A bind with n = 0 unbinds the window and
// ignores the region.
//
// Requests posted later wait for the bind. The rights of peers may exceed the remote rights of the region, but not its
// local rights: reading needs a local right, writing needs LocalWrite.
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

// mayBind says whether a window may give peers such rights to a range of the region.
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

// postBind queues a bind where the state allows it.
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
	q.wins[q.posted.Load()&q.mask] = win
	return q.post(w, nil)
}

// window is the window of a request; nil if it is no bind.
func (r *workRing) window(n seq.Num) *Window {
	if r.at(n).op != OpBind {
		return nil
	}
	return r.wins[uint32(n)&r.mask]
}

// atBind reports whether the next request to be sent is a bind that need not wait. It needs no room in
// the network.
func (c *Conn) atBind() bool {
	q := &c.sq
	if !q.binds || q.next.Op == q.counted || q.next.Off != 0 {
		return false
	}
	w := q.at(q.next.Op)
	return w.op == OpBind && c.waitsFor(w) == sendPacket
}

// bindNext executes a bind that is the next request to be sent. What was sent before it completes
// before it does.
func (c *Conn) bindNext() bool {
	if !c.atBind() {
		return false
	}
	q := &c.sq
	if !c.bindWindow(q.next.Op, q.at(q.next.Op)) {
		c.failRequest(q.next.Op, StatusBindFailed)
		c.fault(proto.ReasonLocal, 0, 0)
		return true
	}
	q.next.Op++
	if c.sent.Empty() {
		q.acked = q.next
		c.completeRequests()
	} else {
		c.sent.At(c.sent.Nxt - 1).ReqEnd = q.next
	}
	return true
}

// bindWindow executes a bind, once. It reports false if its window was freed.
func (c *Conn) bindWindow(n seq.Num, w *work) bool {
	if w.done {
		return true
	}
	win, h := c.sq.window(n), c.host
	w.done = true
	if w.key != 0 {
		h.regions.binding(w.key).key.Store(h.keys.Encrypt(w.key))
	}
	for old := win.bound.Load(); old != windowFreed; old = win.bound.Load() {
		if win.bound.CompareAndSwap(old, w.key) {
			h.unbind(old)
			return true
		}
	}
	return false
}

// undoBind takes back a bind that does not succeed: its key is, or stays, invalid.
func (c *Conn) undoBind(w *work) {
	if w.op == OpBind && w.key != 0 {
		if w.done {
			c.host.unbind(w.key)
		} else {
			c.host.discard(w.key)
		}
		w.key = 0
	}
}
