package dat

import (
	"math"
	"sync"

	"github.com/datxdp/datxdp/wire"
)

// LMR is a local memory region (DAT_LMR_HANDLE): memory that is registered for operations. The LMR keeps the memory
// alive. Any goroutine may call the methods.
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

// LMRCookie identifies shared memory (DAT_LMR_COOKIE). Two cookies are equal if all 40 bytes are.
type LMRCookie [40]byte

// LMRParam has the parameters of a region (DAT_LMR_PARAM).
type LMRParam struct {
	IA         *IA
	PZ         *PZ
	MemType    MemType
	Memory     []byte    // the registered memory
	Parent     *LMR      // MemLMR only: the LMR passed to CreateLMRFromLMR
	Cookie     LMRCookie // MemSharedVirtual only
	Priv       MemPriv
	LMRContext uint32
	RMRContext uint32 // 0 if the LMR has no remote privilege

	RegisteredAddress uint64 // virtual address of the first byte of Memory
	RegisteredSize    uint64 // size of Memory in bytes
}

// CreateLMR registers memory (dat_lmr_create). Operations send directly from the memory and receive directly into it.
// The memory must not be on a goroutine's stack, which may move: use make or mmap. The caller must not access a range
// while an operation uses it. The same memory may be registered any number of times; each LMR has its own contexts.
//
// Receives and the local side of RDMA reads need MemLocalWrite. Other local accesses need MemLocalRead, which
// MemLocalWrite includes. CreateLMR checks that the memory is mapped with the access that the privileges need. The
// mapping must not change until the LMR is freed. If an operation finds the memory unmapped, protected, or beyond the
// end of a mapped file, the connection of that operation ends with DTOLocalProtection or BreakMemory (docs/DAT.md).
//
// Errors:
//
//   - ErrInvalidHandle: pz.
//   - ErrLengthError: mem is empty.
//   - ErrInvalidParameter: an unknown privilege, a mapping that does not allow the privileges, or more than
//     IAAttr.MaxLMRBlockSize bytes.
//   - ErrInsufficientResources: IAAttr.MaxLMRs regions exist.
func (ia *IA) CreateLMR(mem []byte, pz *PZ, priv MemPriv) (*LMR, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	return ia.register(&LMR{ia: ia, pz: pz, mem: mem, priv: priv, kind: MemVirtual})
}

// CreateLMRFromLMR registers the memory of an existing LMR a second time (dat_lmr_create with type DAT_MEM_TYPE_LMR).
// The existing LMR, parent, must belong to this IA. The new LMR has its own zone, privileges and contexts. The two LMRs
// may be freed in any order. Errors are those of CreateLMR.
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

// CreateLMRShared registers memory that several processes share, such as a file mapped with MAP_SHARED (dat_lmr_create
// with type DAT_MEM_TYPE_SHARED_VIRTUAL). The cookie identifies the memory. If an LMR of the adapter with the same
// cookie has another size, the call returns ErrInvalidParameter. The provider does not check that the memory is shared.
// Each process has its own contexts for the memory. Other errors are those of CreateLMR.
func (ia *IA) CreateLMRShared(mem []byte, cookie LMRCookie, pz *PZ, priv MemPriv) (*LMR, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	return ia.register(&LMR{ia: ia, pz: pz, mem: mem, priv: priv, kind: MemSharedVirtual, cookie: cookie})
}

// register validates l and registers its memory with the protocol. The caller has locked ia.
func (ia *IA) register(l *LMR) (*LMR, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	if err := ia.a.mapChecker.checkRange(l.mem, l.priv); err != nil {
		return nil, err
	}
	if err := ia.a.addObject(HandleLMR); err != nil {
		return nil, err
	}
	l.base = addressOf(l.mem)
	var err error
	if l.region, err = ia.a.host.Register(l.mem, l.base, l.pz.id, wire.Rights(l.priv)); err != nil {
		ia.a.removeObjects(HandleLMR, 1)
		return nil, datError(err)
	}
	if l.kind == MemSharedVirtual && !ia.a.sharedMems.addLMR(l.cookie, len(l.mem)) {
		ia.a.host.Unregister(l.region)
		ia.a.removeObjects(HandleLMR, 1)
		return nil, fail(ErrInvalidParameter, "another memory region with this cookie has a size other than %d bytes", len(l.mem))
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
		return fail(ErrLengthError, "a memory region of 0 bytes")
	case uint64(len(l.mem)) > most:
		return fail(ErrInvalidParameter, "a memory region of %d bytes; the maximum is %d", len(l.mem), most)
	case l.priv&^(MemAll|MemRemoteAtomic) != 0:
		return fail(ErrInvalidParameter, "unknown memory privileges %#x", uint8(l.priv))
	}
	return nil
}

// Query returns the parameters of the region (dat_lmr_query).
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

// Context is the key of the region for local access, used in an LMRTriplet (lmr_context).
func (l *LMR) Context() uint32 { return l.region.LocalKey() }

// RMRContext is the key of the region for RDMA by peers (rmr_context). It is 0 if the region has no remote privilege.
func (l *LMR) RMRContext() uint32 { return l.region.RemoteKey() }

// Address is the virtual address of the first byte.
func (l *LMR) Address() uint64 { return l.base }

// Segment returns the triplet of n bytes of the region, from offset off, for a post. Segment does not check the range;
// the post checks it. A triplet cannot express a negative length or one of 2^32 bytes and more: for these, Segment
// returns a triplet outside the region, which every call refuses.
func (l *LMR) Segment(off, n int) LMRTriplet {
	if uint64(n) > math.MaxUint32 {
		return LMRTriplet{Context: l.region.LocalKey(), Address: l.base + uint64(len(l.mem)), Length: math.MaxUint32}
	}
	return LMRTriplet{Context: l.region.LocalKey(), Address: l.base + uint64(off), Length: uint32(n)}
}

// Remote returns the triplet of n bytes of the region, from offset off, for RDMA by a peer. Remote does not check the
// range; each access of the peer is checked.
func (l *LMR) Remote(off, n int) RMRTriplet {
	return RMRTriplet{Context: l.region.RemoteKey(), Address: l.base + uint64(off), Length: uint64(n)}
}

// Free ends the registration (dat_lmr_free). It returns ErrInvalidState while an RMR is bound to the LMR, or a bind to it
// is posted and has not completed: RMR.Free does not end such a bind, but its completion, or EP.Free, does. After Free,
// no engine accesses the memory, and operations that still name the LMR fail. For a long time no other LMR gets the
// same contexts, so a late use of an old context fails too.
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
		return fail(with(ErrInvalidState, SubInvalidStateLMRInUse), "a remote memory region is bound to the LMR; unbind or free it first")
	}
	l.freed = true
	delete(l.ia.lmrs, l)
	l.pz.refs.drop()
	l.end()
	l.ia.a.removeObjects(HandleLMR, 1)
	l.ia.a.barrier()
	return nil
}

// end invalidates the contexts.
func (l *LMR) end() {
	l.ia.a.host.Unregister(l.region)
	if l.kind == MemSharedVirtual {
		l.ia.a.sharedMems.removeLMR(l.cookie)
	}
}

// SyncRDMARead makes earlier writes of this program to the segments visible to RDMA reads that arrive after the call
// (dat_lmr_sync_rdma_read). The segments may belong to several regions and zones. C programs do not need the call,
// because memory is coherent. A Go program needs the call, because the call orders the writes before the reads, as the
// Go memory model requires. SyncRDMARead returns ErrInvalidParameter if a segment is not inside a region.
func (ia *IA) SyncRDMARead(segments []LMRTriplet) error { return ia.sync(segments) }

// SyncRDMAWrite makes the data that RDMA has placed in the segments visible to this program
// (dat_lmr_sync_rdma_write): data of RDMA writes by peers and of RDMA reads by this side. Otherwise it is like
// SyncRDMARead.
func (ia *IA) SyncRDMAWrite(segments []LMRTriplet) error { return ia.sync(segments) }

// Update calls f with the memory of the region while no engine of the adapter runs. So f may read and write memory that
// peers read and write at any time, and the race detector agrees. Peers wait while f runs: f should only copy, and must
// not call the adapter. An RDMA operation of a peer is served packet by packet, and f may run between two packets. So a
// read of several packets may return partly the data before f and partly the data after f: give the data a version or a
// checksum.
//
// Errors: ErrInvalidHandle if the region is freed or the adapter is closed.
func (l *LMR) Update(f func(mem []byte)) error {
	if err := l.checkLive(); err != nil {
		return err
	}
	return l.ia.a.runHalted(func() error { f(l.mem); return nil })
}

func (ia *IA) sync(segments []LMRTriplet) error {
	if err := ia.checkLive(); err != nil {
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

// sharedMemories describes the memory of an adapter that CreateLMRShared has registered. For each cookie, it has the
// size of the memory and the number of LMRs with that cookie.
type sharedMemories struct {
	mu       sync.Mutex
	byCookie map[LMRCookie]sharedMemory
}

type sharedMemory struct{ size, refs int }

// addLMR counts one more LMR with a cookie. It returns false if the LMRs with that cookie have another size.
func (s *sharedMemories) addLMR(c LMRCookie, size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.byCookie[c]
	if known && m.size != size {
		return false
	}
	if s.byCookie == nil {
		s.byCookie = make(map[LMRCookie]sharedMemory)
	}
	s.byCookie[c] = sharedMemory{size, m.refs + 1}
	return true
}

func (s *sharedMemories) removeLMR(c LMRCookie) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byCookie[c]; m.refs > 1 {
		s.byCookie[c] = sharedMemory{m.size, m.refs - 1}
	} else {
		delete(s.byCookie, c)
	}
}
