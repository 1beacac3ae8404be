package dat

import (
	"sync"

	"github.com/datxdp/datxdp/wire"
)

// LMR is registered memory (DAT_LMR_HANDLE). It keeps the memory alive. All its methods may be called by
// any goroutine.
type LMR struct {
	consumer
	ia     *IA
	pz     *PZ
	region *wire.Region
	mem    []byte
	base   uint64
	priv   MemPriv
	kind   MemType
	parent *LMR
	cookie LMRCookie
	freed  bool // guarded by ia.mu
}

// LMRCookie names shared memory (DAT_LMR_COOKIE). All its bytes count.
type LMRCookie [40]byte

// LMRParam describes a region (DAT_LMR_PARAM).
type LMRParam struct {
	IA         *IA
	PZ         *PZ
	MemType    MemType
	Memory     []byte    // the caller's, as it was registered
	Parent     *LMR      // MemLMR: what it was made from
	Cookie     LMRCookie // MemSharedVirtual
	Priv       MemPriv
	LMRContext uint32
	RMRContext uint32 // 0 without a remote privilege

	// What is registered, in bytes: exactly Memory.
	RegisteredAddress, RegisteredSize uint64
}

// CreateLMR registers memory (dat_lmr_create): data moves between it and the network without
// another copy. The memory must not be a part of a goroutine's stack that may move: use make or
// mmap. While an operation uses a range, the caller does not touch it. Memory may be registered as
// often as one likes; each registration has contexts of its own.
//
// The memory must be mapped for what the privileges allow, which is checked, and stay so until the LMR is freed: an
// operation that finds it unmapped, protected, or beyond the end of its file ends its connection with DTOLocalProtection
// or BreakMemory (docs/DAT.md).
//
// Local privileges are LocalWrite, for receives and as the sink of reads, and LocalRead, which either of
// the two grants. Errors: ErrInvalidHandle, ErrLengthError (no bytes), ErrInvalidParameter (privileges,
// a mapping that does not allow them, IAAttr.MaxLMRBlockSize), ErrInsufficientResources (IAAttr.MaxLMRs).
func (ia *IA) CreateLMR(mem []byte, pz *PZ, priv MemPriv) (*LMR, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	return ia.register(&LMR{ia: ia, pz: pz, mem: mem, priv: priv, kind: MemVirtual})
}

// CreateLMRFromLMR registers the memory of another region of the same IA anew, with a zone, privileges
// and contexts of its own (dat_lmr_create of type LMR). Either may be freed before the other.
func (ia *IA) CreateLMRFromLMR(parent *LMR, pz *PZ, priv MemPriv) (*LMR, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if parent == nil || parent.ia != ia || parent.freed {
		return nil, errHandleLMR
	}
	return ia.register(&LMR{ia: ia, pz: pz, mem: parent.mem, priv: priv, kind: MemLMR, parent: parent})
}

// CreateLMRShared registers memory that processes share, such as a file mapped with MAP_SHARED
// (dat_lmr_create of type SHARED_VIRTUAL). The cookie names the memory to whoever registers it too:
// while one registration of an adapter lives, others with its cookie have to be of as many bytes, else
// ErrInvalidParameter. The provider cannot tell whether the memory is shared and does not ask; each
// process has contexts of its own for it.
func (ia *IA) CreateLMRShared(mem []byte, cookie LMRCookie, pz *PZ, priv MemPriv) (*LMR, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	return ia.register(&LMR{ia: ia, pz: pz, mem: mem, priv: priv, kind: MemSharedVirtual, cookie: cookie})
}

// register makes the region of l known. ia is locked.
func (ia *IA) register(l *LMR) (*LMR, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	if err := ia.a.maps.check(l.mem, l.priv); err != nil {
		return nil, err
	}
	if err := ia.a.admit(HandleLMR); err != nil {
		return nil, err
	}
	l.base = addressOf(l.mem)
	var err error
	if l.region, err = ia.a.host.Register(l.mem, l.base, l.pz.id, wire.Rights(l.priv)); err != nil {
		ia.a.dismiss(HandleLMR, 1)
		return nil, status(err)
	}
	if l.kind == MemSharedVirtual && !ia.a.sharing.take(l.cookie, len(l.mem)) {
		ia.a.host.Unregister(l.region)
		ia.a.dismiss(HandleLMR, 1)
		return nil, fail(ErrInvalidParameter, "the cookie names memory of another length than %d bytes", len(l.mem))
	}
	l.pz.refs.take()
	ia.lmrs[l] = struct{}{}
	return l, nil
}

func (l *LMR) validate() error {
	switch most := l.ia.a.attr.MaxLMRBlockSize; {
	case !l.pz.usable(l.ia):
		return errHandlePZ
	case len(l.mem) == 0:
		return fail(ErrLengthError, "a memory region of no bytes")
	case uint64(len(l.mem)) > most:
		return fail(ErrInvalidParameter, "a memory region of %d bytes; the most is %d", len(l.mem), most)
	case l.priv&^(MemAll|MemRemoteAtomic) != 0:
		return fail(ErrInvalidParameter, "memory privileges %#x", uint8(l.priv))
	}
	return nil
}

// Query describes the region (dat_lmr_query).
func (l *LMR) Query() (LMRParam, error) {
	if l == nil {
		return LMRParam{}, errHandleLMR
	}
	if err := l.ia.lock(); err != nil {
		return LMRParam{}, err
	}
	defer l.ia.mu.Unlock()
	if l.freed {
		return LMRParam{}, errHandleLMR
	}
	return LMRParam{IA: l.ia, PZ: l.pz, MemType: l.kind, Memory: l.mem, Parent: l.parent, Cookie: l.cookie,
		Priv: l.priv, LMRContext: l.Context(), RMRContext: l.RMRContext(), RegisteredAddress: l.base,
		RegisteredSize: uint64(len(l.mem))}, nil
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

// Free ends a registration (dat_lmr_free): ErrInvalidState while an RMR is bound to it. When it returns,
// no engine touches the memory any more: operations that still name it fail. A context is not used
// again soon.
func (l *LMR) Free() error {
	if l == nil {
		return errHandleLMR
	}
	if err := l.ia.lock(); err != nil {
		return err
	}
	defer l.ia.mu.Unlock()
	if l.freed {
		return errHandleLMR
	}
	if !l.region.Retire() {
		return fail(with(ErrInvalidState, SubInvalidStateLMRInUse), "a remote memory region is bound to it; unbind or free that first")
	}
	l.freed = true
	delete(l.ia.lmrs, l)
	l.pz.refs.drop()
	l.end()
	l.ia.a.dismiss(HandleLMR, 1)
	l.ia.a.barrier()
	return nil
}

// end makes the contexts invalid.
func (l *LMR) end() {
	l.ia.a.host.Unregister(l.region)
	if l.kind == MemSharedVirtual {
		l.ia.a.sharing.drop(l.cookie)
	}
}

// SyncRDMARead makes what this host wrote to ranges of its memory visible to RDMA reads that arrive
// from now on (dat_lmr_sync_rdma_read). The segments may be of several regions and zones. Memory is
// coherent here and programs in C never need it; in Go it orders the two, as a lock would.
// ErrInvalidParameter if a segment is not inside a region.
func (ia *IA) SyncRDMARead(segments []LMRTriplet) error { return ia.sync(segments) }

// SyncRDMAWrite makes what RDMA writes of peers, and RDMA reads from here, have placed in ranges of
// this host's memory visible to it (dat_lmr_sync_rdma_write). See SyncRDMARead.
func (ia *IA) SyncRDMAWrite(segments []LMRTriplet) error { return ia.sync(segments) }

func (ia *IA) sync(segments []LMRTriplet) error {
	if err := ia.live(); err != nil {
		return err
	}
	for i, s := range segments {
		if !ia.a.host.Registered(wire.Segment(s)) {
			return fail(errArg2, "segment %d is not inside a memory region", i)
		}
	}
	ia.a.barrier()
	return nil
}

// shares are the cookies of an adapter's shared memory, and how long the memory is.
type shares struct {
	mu     sync.Mutex
	memory map[LMRCookie]share
}

type share struct{ size, refs int }

// take counts one more registration of the memory of a cookie; false if it is of another size.
func (s *shares) take(c LMRCookie, size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.memory[c]
	if known && m.size != size {
		return false
	}
	if s.memory == nil {
		s.memory = make(map[LMRCookie]share)
	}
	s.memory[c] = share{size, m.refs + 1}
	return true
}

func (s *shares) drop(c LMRCookie) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.memory[c]; m.refs > 1 {
		s.memory[c] = share{m.size, m.refs - 1}
	} else {
		delete(s.memory, c)
	}
}
