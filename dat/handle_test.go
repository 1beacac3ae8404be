package dat

import (
	"io"
	"net/netip"
	"testing"
	"time"
)

// TestHandles: every method returns ErrInvalidHandle for a nil object, for a freed object, and for an object whose
// adapter is closed.
func TestHandles(t *testing.T) {
	n := newSim(t)
	h := newHost(t, n, 0, Options{})
	type objects struct {
		ia  *IA
		pz  *PZ
		evd *EVD
		lmr *LMR
		ep  *EP
		psp *PSP
		cr  *CR
	}
	var ev Event
	calls := map[string]func(o *objects) error{
		"ia query":   func(o *objects) error { _, err := o.ia.Query(); return err },
		"ia stats":   func(o *objects) error { _, err := o.ia.Stats(); return err },
		"ia conns":   func(o *objects) error { _, err := o.ia.Connections(); return err },
		"ia dump":    func(o *objects) error { return o.ia.Dump(io.Discard) },
		"ia close":   func(o *objects) error { return o.ia.Close() },
		"pz create":  func(o *objects) error { _, err := o.ia.CreatePZ(); return err },
		"evd create": func(o *objects) error { _, err := o.ia.CreateEVD(1, nil, EVDDTO); return err },
		"lmr create": func(o *objects) error { _, err := o.ia.CreateLMR(make([]byte, 1), o.pz, MemAll); return err },
		"ep create": func(o *objects) error {
			_, err := o.ia.CreateEP(o.pz, EPConfig{})
			return err
		},
		"ep create, evd": func(o *objects) error {
			_, err := o.ia.CreateEP(h.pz, EPConfig{RecvEVD: o.evd})
			return err
		},
		"psp create":      func(o *objects) error { _, err := o.ia.CreatePSP(1, o.evd, PSPConsumer); return err },
		"pz free":         func(o *objects) error { return o.pz.Free() },
		"evd free":        func(o *objects) error { return o.evd.Free() },
		"evd dequeue":     func(o *objects) error { return o.evd.Dequeue(&ev) },
		"evd wait":        func(o *objects) error { _, err := o.evd.Wait(0, 1, &ev); return err },
		"lmr free":        func(o *objects) error { return o.lmr.Free() },
		"ep free":         func(o *objects) error { return o.ep.Free() },
		"ep status":       func(o *objects) error { _, _, _, err := o.ep.Status(); return err },
		"ep connect":      func(o *objects) error { return o.ep.Connect(netip.IPv6Loopback(), 1, time.Second, nil) },
		"ep disconnect":   func(o *objects) error { return o.ep.Disconnect(CloseAbrupt) },
		"ep reset":        func(o *objects) error { return o.ep.Reset() },
		"ep post recv":    func(o *objects) error { return o.ep.PostRecv(nil, 0, 0) },
		"ep post send":    func(o *objects) error { return o.ep.PostSend(nil, 0, 0) },
		"ep post write":   func(o *objects) error { return o.ep.PostRDMAWrite(nil, 0, RMRTriplet{}, 0) },
		"ep post read":    func(o *objects) error { return o.ep.PostRDMARead(nil, 0, RMRTriplet{}, 0) },
		"psp free":        func(o *objects) error { return o.psp.Free() },
		"cr query":        func(o *objects) error { _, err := o.cr.Query(); return err },
		"cr accept":       func(o *objects) error { return o.cr.Accept(o.ep, nil) },
		"cr accept, live": func(o *objects) error { return o.cr.Accept(h.point(nil).EP, nil) },
		"cr reject":       func(o *objects) error { return o.cr.Reject(nil) },
	}
	make1 := func(h *host) *objects {
		o := &objects{ia: h.ia}
		o.pz = must(h.ia.CreatePZ())(t)
		o.evd = must(h.ia.CreateEVD(8, nil, EVDDTO|EVDConnection|EVDCR))(t)
		o.lmr = must(h.ia.CreateLMR(make([]byte, 8), o.pz, MemAll))(t)
		o.ep = must(h.ia.CreateEP(o.pz, EPConfig{RecvEVD: o.evd, RequestEVD: o.evd, ConnectEVD: o.evd}))(t)
		o.psp = must(h.ia.CreatePSP(2, o.evd, PSPConsumer))(t)
		asking := h.point(nil)
		ok(t, asking.Connect(h.addr, 2, patience, nil))
		o.cr = await(t, o.evd, EventConnectionRequest).CR
		return o
	}

	freed := make1(h)
	ok(t, freed.cr.Reject(nil))
	ok(t, freed.psp.Free())
	ok(t, freed.ep.Free())
	ok(t, freed.lmr.Free())
	ok(t, freed.pz.Free())
	ok(t, freed.evd.Free())
	other := newHost(t, n, 1, Options{})
	closed := make1(other)
	ok(t, other.ia.Close())
	for name, call := range calls {
		wants(t, name+", nothing", call(&objects{}), ErrInvalidHandle)
		wants(t, name+", closed", call(closed), ErrInvalidHandle)
		if name[:2] != "ia" && name != "pz create" && name != "evd create" {
			wants(t, name+", freed", call(freed), ErrInvalidHandle)
		}
	}
	// Objects of another adapter.
	third := newHost(t, n, 2, Options{})
	evd := must(third.ia.CreateEVD(1, nil, EVDDTO|EVDCR))(t)
	_, err := h.ia.CreateEP(h.pz, EPConfig{RecvEVD: evd})
	wants(t, "endpoint with a foreign dispatcher", err, ErrInvalidHandle)
	_, err = h.ia.CreatePSP(3, evd, PSPConsumer)
	wants(t, "service point with a foreign dispatcher", err, ErrInvalidHandle)
	_, err = h.ia.CreateEP(h.pz, EPConfig{RequestEVD: must(h.ia.CreateEVD(1, nil, EVDCR))(t)})
	wants(t, "endpoint with a dispatcher of another stream", err, ErrInvalidHandle)
}

func TestCreateArguments(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{})
	for _, tc := range []struct {
		name string
		mem  []byte
		priv MemPriv
		want error
	}{
		{"no memory", nil, MemAll, ErrLengthError},
		{"unknown privilege", make([]byte, 1), 0x80, ErrInvalidParameter},
	} {
		_, err := h.ia.CreateLMR(tc.mem, h.pz, tc.priv)
		wants(t, tc.name, err, tc.want)
	}
	for _, priv := range []MemPriv{MemNone, MemLocalRead | MemLocalWrite} {
		if l := must(h.ia.CreateLMR(make([]byte, 8), h.pz, priv))(t); l.RMRContext() != 0 {
			t.Errorf("privileges %#x: peers have a context", priv)
		}
	}
	for i, bad := range []func(*EPAttr){
		func(a *EPAttr) { a.MaxRecvDTOs = maxDTOs + 1 },
		func(a *EPAttr) { a.MaxRequestDTOs = -1 },
		func(a *EPAttr) { a.MaxRecvIOV = maxIOV + 1 },
		func(a *EPAttr) { a.MaxRequestIOV = -1 },
		func(a *EPAttr) { a.MaxRDMAReadIn = maxReads + 1 },
		func(a *EPAttr) { a.MaxRDMAReadOut = -1 },
	} {
		attr := DefaultEPAttr()
		bad(&attr)
		_, err := h.ia.CreateEP(h.pz, EPConfig{Attr: &attr})
		wants(t, "attributes "+string(rune('0'+i)), err, ErrInvalidParameter)
	}
	// A limit on segments of 0 means the default.
	evd := must(h.ia.CreateEVD(1, nil, EVDDTO))(t)
	e := must(h.ia.CreateEP(h.pz, EPConfig{RecvEVD: evd, Attr: &EPAttr{MaxRecvDTOs: 1}}))(t)
	ok(t, e.PostRecv(make([]LMRTriplet, DefaultEPAttr().MaxRecvIOV), 1, 0))
}
