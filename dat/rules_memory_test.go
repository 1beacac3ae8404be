package dat

import (
	"fmt"
	"testing"
	"unsafe"
)

var memoryRules = []topic{
	{"dat_pz_create", []rule{
		{"an unused zone can be freed", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			pz := must(h.ia.CreatePZ())(t)
			ok(t, pz.Free())
			wants(t, "a second free", pz.Free(), ErrInvalidHandle)
		}},
		{"on an adapter that is closed or none is refused", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			ok(t, h.ia.Close())
			for _, ia := range []*IA{h.ia, nil} {
				_, err := ia.CreatePZ()
				wants(t, "create", err, ErrInvalidHandle)
			}
		}},
		{"the memory of one zone is not for the endpoints of another", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			other := must(a.ia.CreateLMR(make([]byte, 8), must(a.ia.CreatePZ())(t), MemAll))(t)
			wants(t, "send", x.PostSend([]LMRTriplet{other.Segment(0, 8)}, 1, 0), ErrProtectionViolation)
			wants(t, "recv", x.PostRecv([]LMRTriplet{other.Segment(0, 8)}, 1, 0), ErrProtectionViolation)
		}},
	}},
	{"dat_pz_query", []rule{
		{"it names the adapter", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			if p := must(h.pz.Query())(t); p.IA != h.ia {
				t.Errorf("%p, want %p", p.IA, h.ia)
			}
		}},
		{"of a zone that is freed, closed or none is refused", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			pz := must(h.ia.CreatePZ())(t)
			ok(t, pz.Free())
			ok(t, h.ia.Close())
			for _, p := range []*PZ{pz, h.pz, nil} {
				_, err := p.Query()
				wants(t, "query", err, with(ErrInvalidHandle, SubInvalidHandlePZ).(Return).Type())
			}
		}},
	}},
	{"dat_pz_free", []rule{
		{"is refused while an endpoint uses it", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			ep := must(h.ia.CreateEP(h.pz, EPConfig{}))(t)
			wants(t, "free", h.pz.Free(), with(ErrInvalidState, SubInvalidStatePZInUse))
			must(h.pz.Query())(t)
			ok(t, ep.Free())
			ok(t, h.pz.Free())
		}},
		{"is refused while a region uses it", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			for _, l := range everyLMR(h, make([]byte, 8), MemAll) {
				wants(t, "free", h.pz.Free(), with(ErrInvalidState, SubInvalidStatePZInUse))
				ok(t, l.Free())
			}
			ok(t, h.pz.Free())
		}},
		{"no object can be created in a freed zone", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			ok(t, h.pz.Free())
			_, err := h.ia.CreateLMR(make([]byte, 8), h.pz, MemAll)
			wants(t, "region", err, ErrInvalidHandle)
			_, err = h.ia.CreateEP(h.pz, EPConfig{})
			wants(t, "endpoint", err, ErrInvalidHandle)
		}},
	}},
	{"dat_lmr_create", []rule{
		{"each privilege and every set of them is granted, and no other bit is one", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			for p := range 256 {
				if p&0x40 != 0 {
					continue // privileges of the extensions
				}
				want := error(nil)
				if MemPriv(p)&^MemAll != 0 {
					want = ErrInvalidParameter
				}
				l, err := h.ia.CreateLMR(make([]byte, 8), h.pz, MemPriv(p))
				wants(t, fmt.Sprintf("privileges %#x", p), err, want)
				if err == nil && must(l.Query())(t).Priv != MemPriv(p) {
					t.Errorf("privileges %#x became others", p)
				}
			}
		}},
		{"no bytes are a length error", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			for _, mem := range [][]byte{nil, {}} {
				_, err := h.ia.CreateLMR(mem, h.pz, MemAll)
				wants(t, "create", err, ErrLengthError)
				_, err = h.ia.CreateLMRShared(mem, LMRCookie{}, h.pz, MemAll)
				wants(t, "create shared", err, ErrLengthError)
			}
			ok(t, h.pz.Free())
		}},
		{"more bytes than an adapter takes in one region are refused", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			h.mendsLimits()
			h.ia.a.attr.MaxLMRBlockSize = 100
			must(h.ia.CreateLMR(make([]byte, 100), h.pz, MemAll))(t)
			_, err := h.ia.CreateLMR(make([]byte, 101), h.pz, MemAll)
			wants(t, "create", err, ErrInvalidParameter)
		}},
		{"handles are looked at before the memory and the privileges", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			_, err := h.ia.CreateLMR(nil, nil, 0xff)
			wants(t, "no zone", err, with(ErrInvalidHandle, SubInvalidHandlePZ))
			_, err = (*IA)(nil).CreateLMR(nil, h.pz, 0xff)
			wants(t, "no adapter", err, with(ErrInvalidHandle, SubInvalidHandleIA))
		}},
		{"the zone is one of the same open", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			for _, pz := range []*PZ{b.pz, must(a.reopen(Options{}).CreatePZ())(t)} {
				_, err := a.ia.CreateLMR(make([]byte, 8), pz, MemAll)
				wants(t, "create", err, ErrInvalidHandle)
			}
		}},
		{"peers have a context where they have a right, and only there", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			for p := MemNone; p <= 0x33; p++ {
				if p&^0x33 != 0 {
					continue
				}
				l := must(h.ia.CreateLMR(make([]byte, 8), h.pz, p))(t)
				if remote := p&(MemRemoteRead|MemRemoteWrite) != 0; (l.RMRContext() != 0) != remote {
					t.Errorf("privileges %#x: context %#x", p, l.RMRContext())
				}
			}
		}},
		{"memory may be registered many times, each time with different contexts", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			mem := make([]byte, 8)
			local, remote := map[uint32]bool{}, map[uint32]bool{}
			for range 200 {
				l := must(h.ia.CreateLMR(mem, h.pz, MemAll))(t)
				local[l.Context()], remote[l.RMRContext()] = true, true
			}
			if len(local) != 200 || len(remote) != 200 {
				t.Errorf("%d and %d contexts of 200 regions", len(local), len(remote))
			}
		}},
		{"a region over the memory of another has its own zone, privileges and contexts", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			parent := must(b.ia.CreateLMR(y.mem[:100], must(b.ia.CreatePZ())(t), MemNone))(t)
			l := must(b.ia.CreateLMRFromLMR(parent, b.pz, MemRemoteWrite))(t)
			if l.Address() != parent.Address() || l.Context() == parent.Context() || parent.RMRContext() != 0 {
				t.Error("address or contexts are wrong")
			}
			copy(x.mem, "over")
			ok(t, x.PostRDMAWrite(x.seg(0, 4), 1, l.Remote(0, 4), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 4)
			same(t, y.mem[:4], x.mem[:4])
		}},
		{"a region and one over its memory are freed in any order", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			for _, parentFirst := range []bool{true, false} {
				parent := must(b.ia.CreateLMR(y.mem[:64], b.pz, MemRemoteWrite))(t)
				l := must(b.ia.CreateLMRFromLMR(parent, b.pz, MemRemoteWrite))(t)
				left, freed := parent, l
				if parentFirst {
					left, freed = l, parent
				}
				ok(t, freed.Free())
				ok(t, x.PostRDMAWrite(x.seg(0, 4), 1, left.Remote(0, 4), 0))
				x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 4)
				ok(t, left.Free())
			}
		}},
		{"a region over one that is freed, of another open or none is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			freed := must(a.ia.CreateLMR(make([]byte, 8), a.pz, MemAll))(t)
			ok(t, freed.Free())
			for _, l := range []*LMR{nil, freed, b.point(nil).lmr} {
				_, err := a.ia.CreateLMRFromLMR(l, a.pz, MemAll)
				wants(t, "create", err, with(ErrInvalidHandle, SubInvalidHandleLMR))
			}
			ok(t, a.pz.Free())
		}},
		{"shared memory moves data as any other", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			l := must(b.ia.CreateLMRShared(y.mem[:64], LMRCookie{39: 1}, b.pz, MemAll))(t)
			copy(x.mem, "shared")
			ok(t, x.PostRDMAWrite(x.seg(0, 6), 1, l.Remote(0, 6), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 6)
			same(t, y.mem[:6], x.mem[:6])
		}},
		{"a cookie names memory of one length while somebody has it, all its bytes count", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			again := h.reopen(Options{})
			pz := must(again.CreatePZ())(t)
			share := func(size int, c LMRCookie) (*LMR, error) {
				return again.CreateLMRShared(make([]byte, size), c, pz, MemAll)
			}
			first := must(h.ia.CreateLMRShared(make([]byte, 64), LMRCookie{1}, h.pz, MemAll))(t)
			second := must(share(64, LMRCookie{1}))(t)
			must(share(65, LMRCookie{1, 39: 1}))(t)
			_, err := share(65, LMRCookie{1})
			wants(t, "another length", err, ErrInvalidParameter)
			ok(t, first.Free())
			_, err = share(65, LMRCookie{1})
			wants(t, "another length, one has it", err, ErrInvalidParameter)
			ok(t, second.Free())
			must(share(65, LMRCookie{1}))(t)
			ok(t, again.Close())
			must(h.ia.CreateLMRShared(make([]byte, 66), LMRCookie{1}, h.pz, MemAll))(t)
		}},
		{"a failure uses no zone and no context", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			h.mendsLimits()
			h.ia.a.attr.MaxLMRs = 1
			must(h.ia.CreateLMRShared(make([]byte, 8), LMRCookie{}, h.pz, 0))(t)
			h.ia.a.attr.MaxLMRs = 2
			for range 3 {
				_, err := h.ia.CreateLMRShared(make([]byte, 9), LMRCookie{}, h.pz, 0)
				wants(t, "create", err, ErrInvalidParameter)
			}
			must(h.ia.CreateLMR(make([]byte, 8), h.pz, 0))(t)
			_, err := h.ia.CreateLMR(make([]byte, 8), h.pz, 0)
			wants(t, "beyond the limit", err, with(ErrInsufficientResources, SubResourceMemoryRegion))
		}},
	}},
	{"dat_lmr_query", []rule{
		{"it returns exactly the registered parameters", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			mem := make([]byte, 100)[3:50]
			for kind, l := range everyLMR(h, mem, MemLocalRead|MemRemoteWrite) {
				p := must(l.Query())(t)
				if p.IA != h.ia || p.PZ != h.pz || int(p.MemType) != kind || p.Priv != MemLocalRead|MemRemoteWrite ||
					p.LMRContext != l.Context() || p.RMRContext != l.RMRContext() || p.RMRContext == 0 {
					t.Errorf("%+v", p)
				}
				if &p.Memory[0] != &mem[0] || len(p.Memory) != len(mem) || p.RegisteredSize != uint64(len(mem)) ||
					p.RegisteredAddress != uint64(uintptr(unsafe.Pointer(&mem[0]))) || p.RegisteredAddress != l.Address() {
					t.Errorf("memory: %+v", p)
				}
			}
		}},
		{"it returns the parent region and the cookie", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			l := everyLMR(h, make([]byte, 8), MemAll)
			if p := must(l[MemLMR].Query())(t); p.Parent != l[MemVirtual] {
				t.Errorf("parent %p, want %p", p.Parent, l[MemVirtual])
			}
			if p := must(l[MemSharedVirtual].Query())(t); p.Cookie != (LMRCookie{7}) {
				t.Errorf("cookie %v", p.Cookie)
			}
		}},
		{"of a region that is freed, closed or none is refused", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			l := everyLMR(h, make([]byte, 8), MemAll)
			ok(t, l[0].Free())
			_, err := l[0].Query()
			wants(t, "freed", err, with(ErrInvalidHandle, SubInvalidHandleLMR))
			ok(t, h.ia.Close())
			_, err = l[1].Query()
			wants(t, "closed", err, ErrInvalidHandle)
			_, err = (*LMR)(nil).Query()
			wants(t, "none", err, ErrInvalidHandle)
		}},
	}},
	{"dat_lmr_free", []rule{
		{"its local context is not known any more", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			iov := x.seg(0, 8)
			ok(t, x.lmr.Free())
			wants(t, "send", x.PostSend(iov, 1, 0), ErrPrivilegesViolation)
			wants(t, "recv", x.PostRecv(iov, 1, 0), ErrPrivilegesViolation)
		}},
		{"a second free is refused", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			for _, l := range everyLMR(h, make([]byte, 8), MemAll) {
				ok(t, l.Free())
				wants(t, "again", l.Free(), with(ErrInvalidHandle, SubInvalidHandleLMR))
			}
		}},
		{"with receives posted on it succeeds, and they flush", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, y.lmr.Free())
			ok(t, x.Disconnect(CloseAbrupt))
			y.expect(EventDisconnected)
			y.done(y.recv, 1, DTOReceive, DTOFlushed, 0)
		}},
		{"a peer that uses it later is refused access", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			for _, op := range []DTO{DTORDMAWrite, DTORDMARead} {
				x, y := pair(a, b, nil)
				ok(t, y.lmr.Free())
				access(t, x, op, 1, y.lmr.Remote(0, 8))
				x.done(x.request, 1, op, DTORemoteAccess, 0)
				x.expect(EventBroken)
				y.expect(EventBroken)
			}
		}},
		{"another region over the memory is not touched by it", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, must(b.ia.CreateLMR(y.mem, b.pz, MemAll))(t).Free())
			proves(x, y)
		}},
		{"its contexts are not used again soon", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			local, remote := map[uint32]bool{}, map[uint32]bool{}
			const times = 3000
			for range times {
				l := must(h.ia.CreateLMR(make([]byte, 1), h.pz, MemAll))(t)
				local[l.Context()], remote[l.RMRContext()] = true, true
				ok(t, l.Free())
			}
			if len(local) != times || len(remote) != times {
				t.Errorf("%d and %d contexts of %d regions", len(local), len(remote), times)
			}
		}},
	}},
	{"dat_lmr_sync_rdma_read", syncRules((*IA).SyncRDMARead)},
	{"dat_lmr_sync_rdma_write", append(syncRules((*IA).SyncRDMAWrite), rule{
		"after it the host sees the data that a peer wrote", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			x.peer = nil // because done would order the accesses
			copy(x.mem, "written")
			ok(t, x.PostRDMAWrite(x.seg(0, 7), 1, y.lmr.Remote(0, 7), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 7)
			ok(t, b.ia.SyncRDMAWrite(y.seg(0, 7)))
			same(t, y.mem[:7], x.mem[:7]) // the race detector must not report this
		},
	})},
}

// everyLMR registers memory with each type, in the order of MemType.
func everyLMR(h *host, mem []byte, priv MemPriv) []*LMR {
	h.t.Helper()
	l := must(h.ia.CreateLMR(mem, h.pz, priv))(h.t)
	return []*LMR{l, must(h.ia.CreateLMRFromLMR(l, h.pz, priv))(h.t),
		must(h.ia.CreateLMRShared(mem, LMRCookie{7}, h.pz, priv))(h.t)}
}

// syncRules returns the rules of both calls that synchronise memory.
func syncRules(sync func(*IA, []LMRTriplet) error) []rule {
	return []rule{
		{"segments of several regions and zones are synchronised together", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			l := must(h.ia.CreateLMR(make([]byte, 64), h.pz, MemAll))(t)
			other := must(h.ia.CreateLMR(make([]byte, 64), must(h.ia.CreatePZ())(t), MemNone))(t)
			ok(t, sync(h.ia, []LMRTriplet{l.Segment(0, 64), l.Segment(63, 1), other.Segment(8, 8)}))
			ok(t, sync(h.ia, nil))
		}},
		{"a segment that is not inside a region is refused", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			l := must(h.ia.CreateLMR(make([]byte, 64), h.pz, MemAll))(t)
			freed := must(h.ia.CreateLMR(make([]byte, 64), h.pz, MemAll))(t)
			ok(t, freed.Free())
			before, wrap := l.Segment(0, 1), l.Segment(0, 64)
			before.Address--
			wrap.Address = 1<<64 - 1
			for what, s := range map[string]LMRTriplet{"one byte beyond": l.Segment(1, 64), "one byte before": before,
				"wraps": wrap, "freed": freed.Segment(0, 1), "no region": {Context: 0x12345, Length: 1}} {
				wants(t, what, sync(h.ia, []LMRTriplet{l.Segment(0, 1), s}), ErrInvalidParameter)
			}
		}},
		{"a segment of no bytes is ignored, whatever else it says", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			ok(t, sync(h.ia, []LMRTriplet{{Context: 0x12345, Address: 1<<64 - 1}}))
		}},
		{"on an adapter that is closed or none is refused", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			ok(t, h.ia.Close())
			for _, ia := range []*IA{h.ia, nil} {
				wants(t, "sync", sync(ia, []LMRTriplet{{Length: 1}}), with(ErrInvalidHandle, SubInvalidHandleIA))
			}
		}},
	}
}
