package wire

import (
	"math"
	"sync/atomic"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Window is a memory window: it gives peers rights to a range of a region. Each bind chooses the range and the rights,
// and creates a new remote key. The key is valid until the next bind of the window, an invalidation by a peer, or Free.
// When the bind or the receive that has ended its validity completes, no engine accesses memory with the key.
//
// Any goroutine may call the methods.
type Window struct {
	// User belongs to the consumer; the engine does not read it.
	User any

	host       *Host
	zone       uint32
	singleConn bool          // only the connection that bound a key may use it
	bound      atomic.Uint32 // plain key of the last bind; 0: no bind; windowFreed: the window is freed
}

// windowFreed is a value that is never the plain key of a window.
const windowFreed = math.MaxUint32

// NewWindow makes a window that is not bound. The connections of one protection zone may use it. If singleConn is true,
// only the connection that binds the window may use it.
func (h *Host) NewWindow(zone uint32, singleConn bool, user any) *Window {
	return &Window{User: user, host: h, zone: zone, singleConn: singleConn}
}

// Free invalidates the key of the window for ever. A goroutine that owns an engine when Free is called may access the
// memory until it gives the engine up. After that, no engine accesses the memory through the window. A bind that was
// posted but not executed fails.
func (w *Window) Free() { w.host.unbind(w.bound.Swap(windowFreed)) }

// Binding describes the memory and the rights that a bound window gives.
type Binding struct {
	Key     uint32 // remote key for peers
	Context uint32 // Region.LocalKey of the region
	Address uint64
	Length  uint32 // bytes
	Rights  Rights
}

// Binding returns the current binding of the window. It reports false if the window is not bound.
func (w *Window) Binding() (Binding, bool) {
	plain := w.bound.Load()
	key := w.host.keys.Encrypt(plain)
	v, r := w.host.regions.binding(plain).load(key)
	if r == nil {
		return Binding{}, false
	}
	return Binding{Key: key, Context: r.local, Address: v.base, Length: uint32(v.size), Rights: v.rights}, true
}

// Live reports whether the region is still registered.
func (r *Region) Live() bool { return !r.dead.Load() }

// Retire prevents new binds to a region that is about to be unregistered. If a window is bound to the region, or a bind
// is posted, Retire does nothing and reports false.
func (r *Region) Retire() bool { return r.pins.CompareAndSwap(0, retired) }

const retired = math.MinInt32 / 2

// pin counts a window that is bound to the region. It reports false if the region is retired.
func (r *Region) pin() bool {
	if r.pins.Add(1) > 0 {
		return true
	}
	r.pins.Add(-1)
	return false
}

// binding is the entry of a window key. It is written only while the field key is 0. A reader loads the field key
// before and after the other fields. If the two values are equal, the fields belong together: this is a seqlock with
// the key as its version. A key is used again only after very many binds, so two equal values cannot come from two
// different binds.
type binding struct {
	key    atomic.Uint32 // remote key; 0: invalid
	rights atomic.Uint32
	size   atomic.Uint32
	base   atomic.Uint64
	region atomic.Pointer[Region]
	only   atomic.Pointer[Conn] // the connection that may use it; nil: every connection of the zone
}

type bindingPage [1 << pageBits]binding

// view is a copy of the fields of a binding.
type view struct {
	base   uint64
	size   uint64
	rights Rights
	only   *Conn
}

// load reads a binding. It returns a nil region if key is not the valid key of the binding.
func (b *binding) load(key uint32) (view, *Region) {
	if !b.hasKey(key) {
		return view{}, nil
	}
	v := view{base: b.base.Load(), size: uint64(b.size.Load()), rights: Rights(b.rights.Load()), only: b.only.Load()}
	r := b.region.Load()
	if !b.hasKey(key) || r == nil || r.dead.Load() {
		return view{}, nil
	}
	return v, r
}

// hasKey reports whether key is valid and belongs to the binding. The binding may be nil.
func (b *binding) hasKey(key uint32) bool { return b != nil && key != 0 && b.key.Load() == key }

// findMemory returns the range [addr, addr+n) of the memory that a window key names. It returns an error if
// connection c may not access that range with the needed rights.
func (b *binding) findMemory(c *Conn, key uint32, addr, n uint64, need Rights) ([]byte, error) {
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

// binding returns the entry for a plain key, or nil if no window ever had the slot of the key.
func (t *regionTable) binding(plain uint32) *binding {
	p := t.bindings[plain&regionMask>>pageBits].Load()
	if p == nil {
		return nil
	}
	return &p[plain&(1<<pageBits-1)]
}

// takeBinding allocates a plain key and an entry for it.
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

// reserve prepares a binding. It returns the plain key and the remote key, which is not valid yet.
func (h *Host) reserve(r *Region, addr uint64, n uint32, rights Rights, only *Conn) (plain, key uint32, err error) {
	plain, b, err := h.regions.takeBinding()
	if err != nil {
		return 0, 0, err
	}
	if key = h.keys.Encrypt(plain); key == 0 || plain == windowFreed {
		h.regions.Give(plain) // these two of 2^32 values mean "none"
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

// discard frees a binding whose key is not valid.
func (h *Host) discard(plain uint32) {
	b := h.regions.binding(plain)
	b.only.Store(nil)
	b.region.Swap(nil).pins.Add(-1)
	h.regions.Give(plain)
}

// unbind invalidates the remote key that belongs to a plain key. It reports false if the key was not valid.
func (h *Host) unbind(plain uint32) bool {
	b, key := h.regions.binding(plain), h.keys.Encrypt(plain)
	if !b.hasKey(key) || !b.key.CompareAndSwap(key, 0) {
		return false
	}
	h.discard(plain)
	return true
}

// localFault returns the status of request n, which failed for a reason on this side.
func (c *Conn) localFault(n seq.Num) Status {
	if c.sq.at(n).op == OpBind {
		return StatusBindFailed
	}
	return StatusLocalProtection
}

// requestAfter returns the request that comes num operations after request n. Binds do not count as operations,
// because they send nothing and the peer does not see them.
func (c *Conn) requestAfter(n seq.Num, num uint32) seq.Num {
	for end := seq.Num(c.sq.postedCount.Load()); n.Less(end); n++ {
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

// PostSendInvalidate queues a message like PostSend. The argument key is the remote key of a memory window of the peer.
// When the message arrives, the peer invalidates this window. Only then does the receive of the message complete.
func (c *Conn) PostSendInvalidate(segs []Segment, cookie uint64, key uint32, flags WorkFlags) error {
	n, err := c.checkSegments(c.sq.maxSeg.Load(), segs, LocalRead|LocalWrite, c.maxMessage.Load())
	if err != nil {
		return err
	}
	return c.postRequest(&work{cookie: cookie, op: OpSend, flags: flags, length: n, key: key, window: true}, segs)
}

// invalidateWindow ends the validity of a window key that the peer names. It reports false if no window has that
// key, or if the connection may not use the window.
func (c *Conn) invalidateWindow(key uint32) bool {
	plain := c.host.keys.Decrypt(key)
	v, r := c.host.regions.binding(plain).load(key)
	if r == nil || r.zone != c.zone.Load() || v.only != nil && v.only != c {
		return false
	}
	return c.host.unbind(plain)
}

// WindowRange is a range of a memory window of this host. An RDMA read stores its result there.
type WindowRange struct {
	Key    uint32 // remote key of a bound window
	Addr   uint64
	Length uint64 // bytes
}

// PostReadToWindow queues an RDMA read of n bytes from a remote address into a window of this host. The window must
// give RemoteWrite. The read fails if the window is rebound or invalidated before the read completes.
func (c *Conn) PostReadToWindow(to WindowRange, cookie uint64, from Remote, n uint32, flags WorkFlags) error {
	switch {
	case uint64(n) > to.Length:
		return ErrBounds
	case n > c.maxRDMA.Load():
		return ErrTooLong
	case to.Length > 0:
		b := c.host.regions.binding(c.host.keys.Decrypt(to.Key))
		if _, err := b.findMemory(c, to.Key, to.Addr, to.Length, RemoteWrite); err != nil {
			return err
		}
	}
	seg := [1]Segment{{Context: to.Key, Address: to.Addr, Length: n}}
	return c.postRequest(&work{cookie: cookie, op: OpRead, flags: flags, length: n,
		key: from.Key, addr: from.Addr, window: true}, seg[:])
}

// placeRead stores a piece of the response to an RDMA read. It reports false if the destination is gone.
func (c *Conn) placeRead(ch *proto.Chunk, w *work, p *cursor) bool {
	segs := c.sq.segments(ch.Num, w)
	if !w.window {
		return c.copyToSegments(segs, w.arrivedBytes, p, ch.Len)
	}
	if ch.Len == 0 {
		return true
	}
	c.eng.stats.RxBytes += uint64(ch.Len)
	dst, ok := c.remoteMemory(segs[0].Context, segs[0].Address+uint64(w.arrivedBytes), uint32(ch.Len), RemoteWrite)
	if ok {
		p.copy(dst)
	}
	return ok
}

// findTarget returns the region whose remote key is key. If there is none, the key may be that of a window. findTarget
// then returns nil and stores the binding of the window in recv.target.binding, where the next chunk finds it.
func (c *Conn) findTarget(key uint32) *Region {
	if c.recv.target.binding.hasKey(key) {
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
