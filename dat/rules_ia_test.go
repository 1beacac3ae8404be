package dat

import (
	"reflect"
	"strings"
	"testing"
)

var iaRules = []topic{
	{"dat_ia_open", []rule{
		{"opens of one adapter are independent", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			again := b.reopen(Options{})
			x, y := pair(a, b, nil)
			ok(t, again.Close())
			proves(x, y)
		}},
		{"hundreds of opens at one time", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			ias := make([]*IA, 300)
			for i := range ias {
				ias[i] = h.reopen(Options{AsyncQLen: 8})
				must(ias[i].CreatePZ())(t)
			}
			for _, ia := range ias {
				ok(t, ia.Close())
			}
			must(h.ia.Query())(t)
		}},
		{"the asynchronous EVD has the requested capacity, by default 64", func(t *testing.T, n network) {
			for asked, least := range map[int]int{0: 64, 1: 1, 8: 8, 10: 10, 1000: 1000} {
				h := newHost(t, n, 0, Options{AsyncQLen: asked})
				if got := h.ia.AsyncEVD().QLen(); got < least {
					t.Errorf("asked for %d, got %d", asked, got)
				}
				ok(t, h.ia.Close())
			}
		}},
		{"an invalid queue length is refused, and no IA stays open", func(t *testing.T, n network) {
			for asked, want := range map[int]error{-2: ErrInvalidParameter, maxEVDQLen + 1: ErrInsufficientResources} {
				ia, err := n.open(0, Options{AsyncQLen: asked})
				wants(t, "open", err, want)
				if ia != nil {
					t.Error("an adapter and an error")
				}
			}
			newHost(t, n, 0, Options{})
		}},
		{"without an asynchronous EVD errors are dropped", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{AsyncQLen: NoAsyncEVD})
			if h.ia.AsyncEVD() != nil {
				t.Error("there is one")
			}
			h.overflow(h.ia)
		}},
		{"an asynchronous EVD may be shared by opens", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			again := h.reopen(Options{AsyncEVD: h.ia.AsyncEVD(), AsyncQLen: -1})
			if again.AsyncEVD() != h.ia.AsyncEVD() {
				t.Error("the second open has another")
			}
			lost := h.overflow(again)
			if ev := await(t, h.ia.AsyncEVD(), EventAsyncEVDOverflow); ev.Source != lost {
				t.Errorf("the event is of %p, want %p", ev.Source, lost)
			}
		}},
		{"a shared asynchronous EVD stays when an IA that shares it closes", func(t *testing.T, n network) {
			for _, flags := range []CloseFlags{CloseAbrupt, CloseGraceful} {
				h := newHost(t, n, 0, Options{})
				again := h.reopen(Options{AsyncEVD: h.ia.AsyncEVD()})
				ok(t, again.CloseWith(flags))
				h.overflow(h.ia)
				await(t, h.ia.AsyncEVD(), EventAsyncEVDOverflow)
				ok(t, h.ia.Close())
			}
		}},
		{"a shared asynchronous EVD ends with the IA that created it", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			again := h.reopen(Options{AsyncEVD: h.ia.AsyncEVD()})
			ok(t, h.ia.Close())
			if p := must(again.Query())(t); p.AsyncEVD != nil {
				t.Error("it is still there")
			}
			h.overflow(again)
			ok(t, again.Close())
		}},
		{"an EVD that is not an asynchronous one of the adapter is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			freed := must(a.ia.CreateEVD(1, nil, EVDAsync))(t)
			ok(t, freed.Free())
			for what, evd := range map[string]*EVD{"of another adapter": b.ia.AsyncEVD(), "freed": freed,
				"of another stream": must(a.ia.CreateEVD(1, nil, EVDDTO))(t)} {
				_, err := a.tryReopen(Options{AsyncEVD: evd})
				wants(t, what, err, with(ErrInvalidHandle, SubInvalidHandleEVDAsync))
			}
			_, err := a.tryReopen(Options{AsyncEVD: must(a.ia.CreateEVD(1, nil, EVDAsync|EVDDTO))(t)})
			ok(t, err)
		}},
		{"an unknown name is not found", func(t *testing.T, _ network) {
			for _, name := range []string{"", "40", "x", "xsdf", "x34", "34df", ":", "udp:", "ofa:mlx5", strings.Repeat("x", 255)} {
				_, err := Open(name, Options{})
				wants(t, name, err, with(ErrProviderNotFound, SubNameNotRegistered))
			}
		}},
		{"a name of 256 bytes is none", func(t *testing.T, _ network) {
			_, err := Open("udp:"+strings.Repeat("1", 252), Options{})
			wants(t, "open", err, ErrInvalidParameter)
		}},
		{"an address that is not of this host is not found", func(t *testing.T, _ network) {
			_, err := Open("udp:192.0.2.1", Options{})
			wants(t, "open", err, ErrProviderNotFound)
		}},
	}},
	{"dat_ia_query", []rule{
		{"the attributes of an adapter are the same for all opens", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			p, q := must(h.ia.Query())(t), must(h.reopen(Options{}).Query())(t)
			if p.AsyncEVD == q.AsyncEVD {
				t.Error("two opens have one asynchronous EVD")
			}
			p.AsyncEVD, q.AsyncEVD = nil, nil
			if !reflect.DeepEqual(p, q) {
				t.Errorf("%+v and %+v", p, q)
			}
		}},
		{"the asynchronous EVD is named while there is one", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			if p := must(h.ia.Query())(t); p.AsyncEVD == nil || p.AsyncEVD != h.ia.AsyncEVD() {
				t.Errorf("got %p, want %p", p.AsyncEVD, h.ia.AsyncEVD())
			}
			ok(t, h.ia.AsyncEVD().Free())
			if must(h.ia.Query())(t).AsyncEVD != nil {
				t.Error("a freed one is named")
			}
			if must(h.reopen(Options{AsyncQLen: NoAsyncEVD}).Query())(t).AsyncEVD != nil {
				t.Error("one is named where there is none")
			}
		}},
		{"the address is the address to which peers connect", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			b.addr = must(b.ia.Query())(t).Address
			pair(a, b, nil)
		}},
		{"the limits are large enough for every program", func(t *testing.T, n network) {
			p := must(newHost(t, n, 0, Options{}).ia.Query())(t)
			for what, v := range map[string]struct{ got, least int }{
				"EPs": {p.MaxEPs, 1000}, "DTOs of an EP": {p.MaxDTOPerEP, 4096}, "reads in": {p.MaxRDMAReadPerEPIn, 16},
				"reads out": {p.MaxRDMAReadPerEPOut, 16}, "EVDs": {p.MaxEVDs, 3000}, "events": {p.MaxEVDQLen, 65536},
				"segments": {p.MaxIOVPerDTO, 16}, "read segments": {p.MaxIOVPerRDMARead, 16}, "write segments": {p.MaxIOVPerRDMAWrite, 16},
				"LMRs": {p.MaxLMRs, 1000}, "PZs": {p.MaxPZs, 1000}, "RMRs": {p.MaxRMRs, 1000}, "SRQs": {p.MaxSRQs, 1000},
				"EPs of an SRQ": {p.MaxEPPerSRQ, 1000}, "receives of an SRQ": {p.MaxRecvPerSRQ, 4096},
				"bytes of a message": {int(p.MaxMessageSize), 1<<31 - 1}, "bytes of an RDMA": {int(p.MaxRDMASize), 1<<31 - 1},
				"bytes of an LMR": {int(p.MaxLMRBlockSize), 1<<32 - 1}, "reads in, all": {p.MaxRDMAReadIn, p.MaxRDMAReadPerEPIn},
				"reads out, all": {p.MaxRDMAReadOut, p.MaxRDMAReadPerEPOut},
			} {
				if v.got < v.least {
					t.Errorf("%s: %d, want %d or more", what, v.got, v.least)
				}
			}
		}},
		{"the provider is of uDAPL 2.0 and does what the specification demands", func(t *testing.T, n network) {
			p := must(newHost(t, n, 0, Options{}).ia.Query())(t).Provider
			for what, holds := range map[string]bool{
				"version":      p.DAPLMajor == 2 && p.DAPLMinor == 0 && p.Name != "",
				"threads":      p.ThreadSafe,
				"private data": p.MaxPrivateData >= 256,
				"alignment":    p.BufferAlignment > 0 && 256%p.BufferAlignment == 0,
				"memory types": p.MemTypes == MemVirtual|MemLMR|MemSharedVirtual,
				"segments":     p.IOVOwnership == IOVConsumer,
				"posts":        p.AsyncReturnGuaranteed && !p.LMRSyncRequired && !p.RDMAReadNeedsRemoteWrite,
				"named":        named(p.Specific, "DAT_IB_TRANSPORT_MTU") != "" && named(p.Specific, "DAT_EXTENSION_INTERFACE") == "TRUE",
			} {
				if !holds {
					t.Errorf("%s: %+v", what, p)
				}
			}
		}},
		{"streams that may share an EVD do", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			merging := must(h.ia.Query())(t).Provider.StreamMerging
			streams := [NumStreams]EVDFlags{StreamSoftware: EVDSoftware, StreamCR: EVDCR, StreamDTO: EVDDTO,
				StreamConnection: EVDConnection, StreamRMRBind: EVDRMRBind, StreamAsync: EVDAsync}
			for i := range streams {
				for j := range streams {
					_, err := h.ia.CreateEVD(1, nil, streams[i]|streams[j])
					if i == j && !merging[i][j] || merging[i][j] != merging[j][i] || merging[i][j] != (err == nil) {
						t.Errorf("streams %d and %d: %v, but creation says %v", i, j, merging[i][j], err)
					}
				}
			}
		}},
		{"private data may be as long as the provider says, and no longer", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			most := must(a.ia.Query())(t).Provider.MaxPrivateData
			x := a.point(nil)
			wants(t, "one byte more", x.Connect(b.addr, testQual, patience, make([]byte, most+1)), ErrInvalidParameter)
			x.dial(b, make([]byte, most))
			if p := must(b.request(t).Query())(t); len(p.PrivateData) != most {
				t.Errorf("%d bytes arrived, want %d", len(p.PrivateData), most)
			}
		}},
		{"the number of objects of each kind is bounded over all opens, and freed or closed objects do not count", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			again := h.reopen(Options{})
			pz := must(again.CreatePZ())(t)
			h.mendsLimits()
			h.ia.a.attr.MaxPZs, h.ia.a.attr.MaxLMRs, h.ia.a.attr.MaxEVDs, h.ia.a.attr.MaxEPs = 4, 2, 2, 2
			for what, make1 := range map[string]func(ia *IA, pz *PZ) (interface{ Free() error }, error){
				"PZ":  func(ia *IA, _ *PZ) (interface{ Free() error }, error) { return ia.CreatePZ() },
				"LMR": func(ia *IA, pz *PZ) (interface{ Free() error }, error) { return ia.CreateLMR(make([]byte, 1), pz, 0) },
				"EVD": func(ia *IA, _ *PZ) (interface{ Free() error }, error) { return ia.CreateEVD(1, nil, EVDDTO) },
				"EP": func(ia *IA, pz *PZ) (interface{ Free() error }, error) {
					return ia.CreateEP(pz, EPConfig{})
				},
			} {
				first, err := make1(h.ia, h.pz)
				ok(t, err)
				_, err = make1(again, pz)
				ok(t, err)
				_, err = make1(h.ia, h.pz)
				wants(t, what+" beyond the limit", err, ErrInsufficientResources)
				ok(t, first.Free())
				first, err = make1(again, pz)
				if err != nil {
					t.Errorf("%s after a free: %v", what, err)
				}
				_ = first
			}
			ok(t, again.Close())
			for range 2 {
				_, err := h.ia.CreateLMR(make([]byte, 1), h.pz, 0)
				ok(t, err)
				_, err = h.ia.CreateEVD(1, nil, EVDDTO)
				ok(t, err)
				_, err = h.ia.CreateEP(h.pz, EPConfig{})
				ok(t, err)
			}
		}},
		{"an EP can use the limits of an EP, and cannot exceed them", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			p := must(h.ia.Query())(t)
			most := EPAttr{MaxRecvDTOs: p.MaxDTOPerEP, MaxRequestDTOs: p.MaxDTOPerEP, MaxRecvIOV: p.MaxIOVPerDTO,
				MaxRequestIOV: p.MaxIOVPerDTO, MaxRDMAReadIn: p.MaxRDMAReadPerEPIn, MaxRDMAReadOut: p.MaxRDMAReadPerEPOut}
			must(h.ia.CreateEP(h.pz, EPConfig{Attr: &most}))(t)
			for i := range 6 {
				attr := most
				*[]*int{&attr.MaxRecvDTOs, &attr.MaxRequestDTOs, &attr.MaxRecvIOV, &attr.MaxRequestIOV, &attr.MaxRDMAReadIn,
					&attr.MaxRDMAReadOut}[i]++
				_, err := h.ia.CreateEP(h.pz, EPConfig{Attr: &attr})
				wants(t, "one more", err, ErrInvalidParameter)
			}
		}},
		{"a closed adapter returns an error", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			ok(t, h.ia.Close())
			_, err := h.ia.Query()
			wants(t, "query", err, with(ErrInvalidHandle, SubInvalidHandleIA))
		}},
	}},
}

// reopen opens the adapter again and closes that open at the end of the test.
func (h *host) reopen(o Options) *IA {
	h.t.Helper()
	return must(h.tryReopen(o))(h.t)
}

// tryReopen does the same as Open with the name of an open adapter, because some test links have no names.
func (h *host) tryReopen(o Options) (*IA, error) {
	o.setDefaults()
	a, err := acquire(h.ia.a.key, o, nil)
	if err != nil {
		return nil, err
	}
	ia, err := newIA(a, h.ia.name, o)
	if err == nil {
		h.t.Cleanup(func() { _ = ia.Close() }) // the test may have closed it
	}
	return ia, err
}

// overflow makes an EVD of ia lose a completion, and returns the EVD.
func (h *host) overflow(ia *IA) *EVD {
	h.t.Helper()
	evd := must(ia.CreateEVD(1, nil, EVDDTO))(h.t)
	pz := must(ia.CreatePZ())(h.t)
	ep := must(ia.CreateEP(pz, EPConfig{RecvEVD: evd, ConnectEVD: must(ia.CreateEVD(8, nil, EVDConnection))(h.t)}))(h.t)
	for i := range uint64(evd.QLen() + 1) {
		ok(h.t, ep.PostRecv(nil, i, 0))
	}
	ok(h.t, ep.ConnectWith(h.ownedBy.absent(), 1, sharedKeys.dial(ConnectConfig{Timeout: patience})))
	ok(h.t, ep.Disconnect(CloseAbrupt))
	eventually(h.t, "the flush", func() bool { return evd.Len() == evd.QLen() })
	return evd
}

func named(attrs []NamedAttr, name string) string {
	for _, a := range attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}
