package dat

import "github.com/datxdp/datxdp/wire"

// LMR is registered memory (DAT_LMR_HANDLE). It keeps the memory alive.
type LMR struct {
	ia     *IA
	pz     *PZ
	region *wire.Region
	base   uint64
	size   int
	priv   MemPriv
	freed  bool
}

// CreateLMR registers memory (dat_lmr_create): data moves between it and the network without
// another copy. The memory must not be a part of a goroutine's stack that may move: use make or
// mmap. While an operation uses a range, the caller does not touch it.
func (ia *IA) CreateLMR(mem []byte, pz *PZ, priv MemPriv) (*LMR, error) {
	if len(mem) == 0 {
		return nil, fail(ErrLengthError, "a memory region of no bytes")
	}
	if priv&^MemAll != 0 {
		return nil, fail(ErrInvalidParameter, "memory privileges %#x", uint8(priv))
	}
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if !pz.usable(ia) {
		return nil, ErrInvalidHandle
	}
	base := addressOf(mem)
	r, err := ia.a.host.Register(mem, base, pz.id, wire.Rights(priv))
	if err != nil {
		return nil, status(err)
	}
	l := &LMR{ia: ia, pz: pz, region: r, base: base, size: len(mem), priv: priv}
	pz.refs.take()
	ia.lmrs[l] = struct{}{}
	return l, nil
}

// Context names the region in triplets of this host's posts (lmr_context).
func (l *LMR) Context() uint32 { return l.region.LocalKey() }

// RMRContext names the region to peers (rmr_context); 0 without a remote privilege.
func (l *LMR) RMRContext() uint32 { return l.region.RemoteKey() }

// Address is the virtual address of the first byte.
func (l *LMR) Address() uint64 { return l.base }

// Segment names n bytes from offset off on, for a post. It does not check the range: the post does.
func (l *LMR) Segment(off, n int) LMRTriplet {
	return LMRTriplet{Context: l.region.LocalKey(), Address: l.base + uint64(off), Length: uint32(n)}
}

// Remote names n bytes from offset off on for a peer's RDMA.
func (l *LMR) Remote(off, n int) RMRTriplet {
	return RMRTriplet{Context: l.region.RemoteKey(), Address: l.base + uint64(off), Length: uint64(n)}
}

// Free ends a registration (dat_lmr_free): ErrInvalidState while an RMR is bound to it. When it returns, no engine touches the memory any more:
// operations that still name it fail.
func (l *LMR) Free() error {
	if l == nil {
		return ErrInvalidHandle
	}
	if err := l.ia.lock(); err != nil {
		return err
	}
	defer l.ia.mu.Unlock()
	if l.freed {
		return ErrInvalidHandle
	}
	if !l.region.Retire() {
		return fail(ErrInvalidState, "a remote memory region is bound to it; unbind or free that first")
	}
	l.freed = true
	delete(l.ia.lmrs, l)
	l.pz.refs.drop()
	l.ia.a.host.Unregister(l.region)
	l.ia.a.barrier()
	return nil
}
