package wire

import (
	"math"
	"sync/atomic"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Window is a memory window: it gives peers rights to a range of a region for as long as a bind of
// it lasts. Each bind has a remote key of its own, which is good until the next bind, an
// invalidation by a peer, or Free.
//
// Its methods may be called by any goroutine.
type Window struct {
	// User is the consumer's own; the engine does not look at it.
	User any

	host       *Host
	zone       uint32
	singleConn bool          // a key is good only for the connection that it was bound on
	bound      atomic.Uint32 // composed key that was bound last; 0: none, windowFreed: none any more
}

// windowFreed is a composed key that no window is given.
const windowFreed = math.MaxUint32

// NewWindow makes a window that is not bound, for connections of one protection zone. If singleConn is true, only the
// connection that binds the window can use it.
func (h *Host) NewWindow(zone uint32, singleConn bool, user any) *Window {
	return &Window{User: user, host: h, zone: zone, singleConn: singleConn}
}

// Free makes the key of the window invalid for ever. As after Unregister, an engine may still access the memory. A
// posted bind of the window fails if it has not been executed.
func (w *Window) Free() { w.host.unbind(w.bound.Swap(windowFreed)) }

// Binding is what a window stands for.
type Binding struct {
	Key     uint32 // for peers
	Context uint32 // Region.LocalKey
	Address uint64
	Length  uint32 // bytes
	Rights  Rights
}

// Binding is what the window stands for now, and false if it is not bound.
func (w *Window) Binding() (Binding, bool) {
	plain := w.bound.Load()
	key := w.host.keys.Encrypt(plain)
	v, r := w.host.regions.binding(plain).load(key)
	if r == nil {
		return Binding{}, false
	}
	return Binding{Key: key, Context: r.local, Address: v.base, Length: uint32(v.size), Rights: v.rights}, true
}

// Live reports whether the region is registered.
func (r *Region) Live() bool { return !r.dead.Load() }

// Retire keeps windows from being bound to a region that is about to be unregistered. It reports
// false, and does nothing, while one is bound or a bind to it is posted.
func (r *Region) Retire() bool { return r.pins.CompareAndSwap(0, retired) }

const retired = math.MinInt32 / 2

// pin counts a window; false if the region is retired.
func (r *Region) pin() bool {
	if r.pins.Add(1) > 0 {
		return true
	}
	r.pins.Add(-1)
	return false
}

// binding is the slot of a key that belongs to a window. It is written while it has no key, and its
// key is its version: a reader compares the key before and after. A key comes back after so many
// binds that nobody sees it twice.
type binding struct {
	key    atomic.Uint32 // for peers; 0: invalid
	rights atomic.Uint32
	size   atomic.Uint32
	base   atomic.Uint64
	region atomic.Pointer[Region]
	only   atomic.Pointer[Conn] // that may use it; nil: every connection of the zone
}

type bindingPage [1 << pageBits]binding

// view is what was read of a binding.
type view struct {
	base   uint64
	size   uint64
	rights Rights
	only   *Conn
}

// load reads a binding, whose region is nil if key is not what it has.
func (b *binding) load(key uint32) (view, *Region) {
	if !b.has(key) {
		return view{}, nil
	}
	v := view{base: b.base.Load(), size: uint64(b.size.Load()), rights: Rights(b.rights.Load()), only: b.only.Load()}
	r := b.region.Load()
	if !b.has(key) || r == nil || r.dead.Load() {
		return view{}, nil
	}
	return v, r
}

// has reports whether key is valid and that of the binding, which may be nil.
func (b *binding) has(key uint32) bool { return b != nil && key != 0 && b.key.Load() == key }

// memory is the range [addr, addr+n) of what a key stands for, for a connection that needs a right.
func (b *binding) memory(c *Conn, key uint32, addr, n uint64, need Rights) ([]byte, error) {
	v, r := b.load(key)
	switch {
	case r == nil:
		return nil, ErrBadKey
	case r.zone != c.zone.Load() || v.only != nil && v.only != c:
		return nil, ErrZone
	case v.rights&need != need:
		return nil, ErrRights
	case addr < v.base || addr-v.base > v.size || n > v.size-(addr-v.base):
		return nil, ErrBounds
	}
	mem, ok := r.slice(addr, uint32(n))
	if !ok {
		return nil, ErrBounds
	}
	return mem, nil
}

// binding is the slot of a composed key, nil if no window ever had it.
func (t *regionTable) binding(plain uint32) *binding {
	p := t.bindings[plain&regionMask>>pageBits].Load()
	if p == nil {
		return nil
	}
	return &p[plain&(1<<pageBits-1)]
}

// takeBinding takes a slot for a window.
func (t *regionTable) takeBinding() (uint32, *binding, error) {
	plain, err := t.take()
	if err != nil {
		return 0, nil, err
	}
	if p := &t.bindings[plain&regionMask>>pageBits]; p.Load() == nil {
		p.CompareAndSwap(nil, new(bindingPage))
	}
	return plain, t.binding(plain), nil
}

// reserve prepares a binding and returns its composed key and the one for peers, which is not valid yet.
func (h *Host) reserve(r *Region, addr uint64, n uint32, rights Rights, only *Conn) (plain, key uint32, err error) {
	plain, b, err := h.regions.takeBinding()
	if err != nil {
		return 0, 0, err
	}
	if key = h.keys.Encrypt(plain); key == 0 || plain == windowFreed {
		h.regions.Give(plain) // one in four thousand million, and it says "none"
		return h.reserve(r, addr, n, rights, only)
	}
	if !r.pin() {
		h.regions.Give(plain)
		return 0, 0, ErrBadKey
	}
	b.base.Store(addr)
	b.size.Store(n)
	b.rights.Store(uint32(rights))
	b.only.Store(only)
	b.region.Store(r)
	return plain, key, nil
}

// discard gives back a binding that is not valid, or not any more.
func (h *Host) discard(plain uint32) {
	b := h.regions.binding(plain)
	b.only.Store(nil)
	b.region.Swap(nil).pins.Add(-1)
	h.regions.Give(plain)
}

// unbind makes a key invalid, given as it is composed. It reports false if it was not valid.
func (h *Host) unbind(plain uint32) bool {
	b, key := h.regions.binding(plain), h.keys.Encrypt(plain)
	if !b.has(key) || !b.key.CompareAndSwap(key, 0) {
		return false
	}
	h.discard(plain)
	return true
}

// localFault is the status of a request that failed for a reason on this side.
func (c *Conn) localFault(n seq.Num) Status {
	if c.sq.at(n).op == OpBind {
		return StatusBindFailed
	}
	return StatusLocalProtection
}

// operation is the request that comes num operations after one as the peer counts them: it does not
// see binds.
func (c *Conn) operation(n seq.Num, num uint32) seq.Num {
	for end := seq.Num(c.sq.posted.Load()); n.Less(end); n++ {
		if c.sq.at(n).op == OpBind {
			continue
		}
		if num == 0 {
			break
		}
		num--
	}
	return n
}

// PostSendInvalidate queues a message like PostSend that makes a window of the peer invalid before
// the receive there completes.
func (c *Conn) PostSendInvalidate(segs []Segment, cookie uint64, key uint32, flags WorkFlags) error {
	n, err := c.checkSegments(c.sq.maxSeg.Load(), segs, LocalRead|LocalWrite, c.maxMessage.Load())
	if err != nil {
		return err
	}
	return c.postRequest(&work{cookie: cookie, op: OpSend, flags: flags, length: n, key: key, window: true}, segs)
}

// invalidate ends a binding that the peer names. It reports false for a key that is none of a window
// which the connection may use.
func (c *Conn) invalidate(key uint32) bool {
	plain := c.host.keys.Decrypt(key)
	v, r := c.host.regions.binding(plain).load(key)
	if r == nil || r.zone != c.zone.Load() || v.only != nil && v.only != c {
		return false
	}
	return c.host.unbind(plain)
}

// WindowRange is a range of a memory window of this host, the destination of an RDMA read.
type WindowRange struct {
	Key    uint32 // of a window that is bound
	Addr   uint64
	Length uint64 // bytes
}

// PostReadToWindow queues an RDMA read of n bytes from a remote address, into a window of this host
// that gives RemoteWrite. If it is rebound or invalidated meanwhile the read fails.
func (c *Conn) PostReadToWindow(to WindowRange, cookie uint64, from Remote, n uint32, flags WorkFlags) error {
	switch {
	case uint64(n) > to.Length:
		return ErrBounds
	case n > c.maxRDMA.Load():
		return ErrTooLong
	case to.Length > 0:
		b := c.host.regions.binding(c.host.keys.Decrypt(to.Key))
		if _, err := b.memory(c, to.Key, to.Addr, to.Length, RemoteWrite); err != nil {
			return err
		}
	}
	seg := [1]Segment{{Context: to.Key, Address: to.Addr, Length: n}}
	return c.postRequest(&work{cookie: cookie, op: OpRead, flags: flags, length: n,
		key: from.Key, addr: from.Addr, window: true}, seg[:])
}

// placeRead puts a piece of the answer to a read where it belongs. It reports false if that is gone.
func (c *Conn) placeRead(ch *proto.Chunk, w *work, p *cursor) bool {
	segs := c.sq.segments(ch.Num, w)
	if !w.window {
		return c.scatter(segs, w.got, p, ch.Len)
	}
	if ch.Len == 0 {
		return true
	}
	c.eng.stats.RxBytes += uint64(ch.Len)
	dst, ok := c.target(segs[0].Context, segs[0].Address+uint64(w.got), uint32(ch.Len), RemoteWrite)
	if ok {
		p.copy(dst)
	}
	return ok
}

// findTarget is the region that a peer names, nil if the key is not one of a region. The slot where
// it may be that of a window is recv.window then.
func (c *Conn) findTarget(key uint32) *Region {
	if c.recv.target.binding.has(key) {
		return nil
	}
	plain := c.host.keys.Decrypt(key)
	if r := c.host.regions.find(plain); r != nil && r.remote == key {
		c.recv.target.region = r
		return r
	}
	c.recv.target.binding = c.host.regions.binding(plain)
	return nil
}
