package dat

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// objects has one object of each kind; each may be nil.
type objects struct {
	ia  *IA
	pz  *PZ
	evd *EVD
	lmr *LMR
	ep  *EP
	psp *PSP
	rsp *RSP
	cr  *CR
	srq *SRQ
	rmr *RMR
	cno *CNO
}

// misuses has the calls of each object, with arguments that are valid if the object is.
var misuses = map[string]func(o *objects, ev *Event) error{
	"IA.Query":       func(o *objects, _ *Event) error { return second(o.ia.Query()) },
	"IA.Stats":       func(o *objects, _ *Event) error { return second(o.ia.Stats()) },
	"IA.Connections": func(o *objects, _ *Event) error { return second(o.ia.Connections()) },
	"IA.EachConnection": func(o *objects, _ *Event) error {
		return o.ia.EachConnection(func(*ConnInfo) error { return nil })
	},
	"IA.Dump":          func(o *objects, _ *Event) error { return o.ia.Dump(io.Discard) },
	"IA.Close":         func(o *objects, _ *Event) error { return o.ia.Close() },
	"IA.CreatePZ":      func(o *objects, _ *Event) error { return second(o.ia.CreatePZ()) },
	"IA.CreateCNO":     func(o *objects, _ *Event) error { return second(o.ia.CreateCNO(nil)) },
	"IA.CreateEVD":     func(o *objects, _ *Event) error { return second(o.ia.CreateEVD(1, nil, EVDDTO)) },
	"IA.SyncRDMARead":  func(o *objects, _ *Event) error { return o.ia.SyncRDMARead(nil) },
	"IA.SyncRDMAWrite": func(o *objects, _ *Event) error { return o.ia.SyncRDMAWrite(nil) },
	"PZ.CreateLMR":     func(o *objects, _ *Event) error { return second(o.ia.CreateLMR(make([]byte, 1), o.pz, 0)) },
	"PZ.CreateLMRShared": func(o *objects, _ *Event) error {
		return second(o.ia.CreateLMRShared(make([]byte, 1), LMRCookie{}, o.pz, 0))
	},
	"PZ.CreateRMR":      func(o *objects, _ *Event) error { return second(o.pz.CreateRMR()) },
	"PZ.CreateRMRForEP": func(o *objects, _ *Event) error { return second(o.pz.CreateRMRForEP()) },
	"PZ.CreateSRQ":      func(o *objects, _ *Event) error { return second(o.ia.CreateSRQ(o.pz, SRQAttr{MaxRecvDTOs: 1})) },
	"PZ.CreateEP": func(o *objects, _ *Event) error {
		return second(o.ia.CreateEP(o.pz, EPConfig{}))
	},
	"PZ.Query":            func(o *objects, _ *Event) error { return second(o.pz.Query()) },
	"PZ.Free":             func(o *objects, _ *Event) error { return o.pz.Free() },
	"CNO.CreateEVD":       func(o *objects, _ *Event) error { return second(o.ia.CreateEVD(1, o.cno, EVDDTO)) },
	"CNO.ModifyAgent":     func(o *objects, _ *Event) error { return o.cno.ModifyAgent(nil) },
	"CNO.Query":           func(o *objects, _ *Event) error { return second(o.cno.Query()) },
	"CNO.Wait":            func(o *objects, _ *Event) error { return second(o.cno.Wait(0)) },
	"CNO.WaitContext":     func(o *objects, _ *Event) error { return second(o.cno.WaitContext(context.Background())) },
	"CNO.Trigger":         func(o *objects, _ *Event) error { return second(o.cno.Trigger()) },
	"CNO.Free":            func(o *objects, _ *Event) error { return o.cno.Free() },
	"EVD.CreatePSP":       func(o *objects, _ *Event) error { return second(o.ia.CreatePSP(1, o.evd, PSPConsumer)) },
	"EVD.CreatePSPAny":    func(o *objects, _ *Event) error { return second(o.ia.CreatePSPAny(o.evd, PSPConsumer)) },
	"EVD.CreateRSP":       func(o *objects, _ *Event) error { return second(o.ia.CreateRSP(1, nil, o.evd)) },
	"EVD.Query":           func(o *objects, _ *Event) error { return second(o.evd.Query()) },
	"EVD.ModifyCNO":       func(o *objects, _ *Event) error { return o.evd.ModifyCNO(nil) },
	"EVD.Enable":          func(o *objects, _ *Event) error { return o.evd.Enable() },
	"EVD.Disable":         func(o *objects, _ *Event) error { return o.evd.Disable() },
	"EVD.Dequeue":         func(o *objects, ev *Event) error { return o.evd.Dequeue(ev) },
	"EVD.Wait":            func(o *objects, ev *Event) error { return second(o.evd.Wait(0, 1, ev)) },
	"EVD.WaitContext":     func(o *objects, ev *Event) error { return second(o.evd.WaitContext(context.Background(), 1, ev)) },
	"EVD.PostSE":          func(o *objects, _ *Event) error { return o.evd.PostSE(nil) },
	"EVD.Resize":          func(o *objects, _ *Event) error { return o.evd.Resize(8) },
	"EVD.SetUnwaitable":   func(o *objects, _ *Event) error { return o.evd.SetUnwaitable() },
	"EVD.ClearUnwaitable": func(o *objects, _ *Event) error { return o.evd.ClearUnwaitable() },
	"EVD.Free":            func(o *objects, _ *Event) error { return o.evd.Free() },
	"LMR.Query":           func(o *objects, _ *Event) error { return second(o.lmr.Query()) },
	"LMR.Free":            func(o *objects, _ *Event) error { return o.lmr.Free() },
	"LMR.CreateLMR":       func(o *objects, _ *Event) error { return second(o.ia.CreateLMRFromLMR(o.lmr, o.pz, 0)) },
	"RMR.Query":           func(o *objects, _ *Event) error { return second(o.rmr.Query()) },
	"RMR.Bind": func(o *objects, _ *Event) error {
		return second(o.rmr.Bind(o.ep, Binding{}, 0, 0))
	},
	"RMR.Free": func(o *objects, _ *Event) error { return o.rmr.Free() },
	"SRQ.CreateEP": func(o *objects, _ *Event) error {
		return second(o.ia.CreateEP(o.pz, EPConfig{SRQ: o.srq, Attr: &EPAttr{}}))
	},
	"SRQ.Query":       func(o *objects, _ *Event) error { return second(o.srq.Query()) },
	"SRQ.Resize":      func(o *objects, _ *Event) error { return o.srq.Resize(2) },
	"SRQ.SetLW":       func(o *objects, _ *Event) error { return o.srq.SetLW(1) },
	"SRQ.PostRecv":    func(o *objects, _ *Event) error { return o.srq.PostRecv(nil, 0) },
	"SRQ.Free":        func(o *objects, _ *Event) error { return o.srq.Free() },
	"EP.CreateRSP":    func(o *objects, _ *Event) error { return second(o.ia.CreateRSP(1, o.ep, o.evd)) },
	"EP.Query":        func(o *objects, _ *Event) error { return second(o.ep.Query()) },
	"EP.Status":       func(o *objects, _ *Event) error { _, _, _, err := o.ep.Status(); return err },
	"EP.RecvQuery":    func(o *objects, _ *Event) error { _, _, err := o.ep.RecvQuery(); return err },
	"EP.SetWatermark": func(o *objects, _ *Event) error { return o.ep.SetWatermark(1, 1) },
	"EP.Modify":       func(o *objects, _ *Event) error { return o.ep.Modify(EPFieldPZ, &EPParam{}) },
	"EP.Connect":      func(o *objects, _ *Event) error { return o.ep.Connect(netip.IPv6Loopback(), 1, time.Second, nil) },
	"EP.DupConnect": func(o *objects, _ *Event) error {
		return o.ep.DupConnect(o.ep, ConnectConfig{Timeout: time.Second})
	},
	"EP.Disconnect":             func(o *objects, _ *Event) error { return o.ep.Disconnect(CloseAbrupt) },
	"EP.Reset":                  func(o *objects, _ *Event) error { return o.ep.Reset() },
	"EP.Free":                   func(o *objects, _ *Event) error { return o.ep.Free() },
	"EP.PostRecv":               func(o *objects, _ *Event) error { return o.ep.PostRecv(nil, 0, 0) },
	"EP.PostSend":               func(o *objects, _ *Event) error { return o.ep.PostSend(nil, 0, 0) },
	"EP.PostSendWithInvalidate": func(o *objects, _ *Event) error { return o.ep.PostSendWithInvalidate(nil, 0, 0, 1) },
	"EP.PostRDMAWrite":          func(o *objects, _ *Event) error { return o.ep.PostRDMAWrite(nil, 0, RMRTriplet{}, 0) },
	"EP.PostRDMAWriteImm":       func(o *objects, _ *Event) error { return o.ep.PostRDMAWriteImm(nil, 0, RMRTriplet{}, 0, 0) },
	"EP.PostRDMARead":           func(o *objects, _ *Event) error { return o.ep.PostRDMARead(nil, 0, RMRTriplet{}, 0) },
	"EP.PostRDMAReadToRMR":      func(o *objects, _ *Event) error { return o.ep.PostRDMAReadToRMR(RMRTriplet{}, 0, RMRTriplet{}, 0) },
	"EP.PostFetchAdd":           func(o *objects, _ *Event) error { return o.ep.PostFetchAdd(0, LMRTriplet{}, 0, RMRTriplet{}, 0) },
	"EP.PostCmpSwap":            func(o *objects, _ *Event) error { return o.ep.PostCmpSwap(0, 0, LMRTriplet{}, 0, RMRTriplet{}, 0) },
	"PSP.Query":                 func(o *objects, _ *Event) error { return second(o.psp.Query()) },
	"PSP.Free":                  func(o *objects, _ *Event) error { return o.psp.Free() },
	"RSP.Query":                 func(o *objects, _ *Event) error { return second(o.rsp.Query()) },
	"RSP.Free":                  func(o *objects, _ *Event) error { return o.rsp.Free() },
	"CR.Query":                  func(o *objects, _ *Event) error { return second(o.cr.Query()) },
	"CR.Accept":                 func(o *objects, _ *Event) error { return o.cr.Accept(o.ep, nil) },
	"CR.Reject":                 func(o *objects, _ *Event) error { return o.cr.Reject(nil) },
	"CR.Handoff":                func(o *objects, _ *Event) error { return o.cr.Handoff(1) },
}

// all returns the objects, the IA first.
func (o *objects) all() []Handle {
	return []Handle{o.ia, o.pz, o.evd, o.lmr, o.ep, o.psp, o.rsp, o.cr, o.srq, o.rmr, o.cno}
}

// one makes an object of each kind. The connection request is from a to b.
func one(a, b *host) *objects {
	t := a.t
	t.Helper()
	o := &objects{ia: b.ia, psp: b.psp}
	o.pz = must(b.ia.CreatePZ())(t)
	o.cno = must(b.ia.CreateCNO(nil))(t)
	o.evd = must(b.ia.CreateEVD(8, o.cno, evdAll))(t)
	o.lmr = must(b.ia.CreateLMR(make([]byte, 8), o.pz, MemAll))(t)
	o.rmr = must(o.pz.CreateRMR())(t)
	o.srq = must(b.ia.CreateSRQ(o.pz, SRQAttr{MaxRecvDTOs: 1}))(t)
	o.ep = must(b.ia.CreateEP(o.pz, EPConfig{RecvEVD: o.evd, RequestEVD: o.evd, ConnectEVD: o.evd}))(t)
	o.rsp = must(b.ia.CreateRSP(testQual+1, nil, o.evd))(t)
	a.point(nil).dial(b, nil)
	o.cr = b.request(t)
	return o
}

// free frees all objects except the IA.
func (o *objects) free(t testing.TB) {
	t.Helper()
	ok(t, o.cr.Reject(nil))
	for _, f := range []interface{ Free() error }{o.psp, o.rsp, o.ep, o.srq, o.rmr, o.lmr, o.evd, o.cno, o.pz} {
		ok(t, f.Free())
	}
}

// misused checks that every call returns ErrInvalidHandle. The adapter may still be open.
func misused(t *testing.T, o *objects, open bool) {
	t.Helper()
	var ev Event
	for name, call := range misuses {
		if !open || !strings.HasPrefix(name, "IA.") {
			wants(t, name, call(o, &ev), ErrInvalidHandle)
		}
	}
	for _, h := range o.all() {
		if h != Handle(o.ia) || !open {
			name := fmt.Sprintf("%T", h)
			wants(t, name+".HandleType", second(h.HandleType()), ErrInvalidHandle)
			wants(t, name+".SetConsumerContext", h.SetConsumerContext(1), ErrInvalidHandle)
			wants(t, name+".ConsumerContext", second(h.ConsumerContext()), ErrInvalidHandle)
		}
	}
}

// naming has calls of valid objects that take an object of others as an argument.
func naming(o, x *objects) map[string]error {
	mem, attr := make([]byte, 1), DefaultEPAttr()
	return map[string]error{
		"LMR, zone":          second(o.ia.CreateLMR(mem, x.pz, 0)),
		"LMR, LMR":           second(o.ia.CreateLMRFromLMR(x.lmr, o.pz, 0)),
		"LMR, LMR's zone":    second(o.ia.CreateLMRFromLMR(o.lmr, x.pz, 0)),
		"LMR shared, zone":   second(o.ia.CreateLMRShared(mem, LMRCookie{}, x.pz, 0)),
		"SRQ, zone":          second(o.ia.CreateSRQ(x.pz, SRQAttr{MaxRecvDTOs: 1})),
		"EVD, CNO":           second(o.ia.CreateEVD(1, x.cno, EVDDTO)),
		"EVD.ModifyCNO":      o.evd.ModifyCNO(x.cno),
		"EP, zone":           second(o.ia.CreateEP(x.pz, EPConfig{})),
		"EP, receive EVD":    second(o.ia.CreateEP(o.pz, EPConfig{RecvEVD: x.evd})),
		"EP, request EVD":    second(o.ia.CreateEP(o.pz, EPConfig{RequestEVD: x.evd})),
		"EP, connect EVD":    second(o.ia.CreateEP(o.pz, EPConfig{ConnectEVD: x.evd})),
		"EP, SRQ":            second(o.ia.CreateEP(o.pz, EPConfig{SRQ: x.srq, Attr: &attr})),
		"PSP, EVD":           second(o.ia.CreatePSP(7, x.evd, PSPConsumer)),
		"any PSP, EVD":       second(o.ia.CreatePSPAny(x.evd, PSPProvider)),
		"RSP, EVD":           second(o.ia.CreateRSP(7, nil, x.evd)),
		"RSP, EP":            second(o.ia.CreateRSP(7, x.ep, o.evd)),
		"CR, EP":             o.cr.Accept(x.ep, nil),
		"modify, zone":       o.ep.Modify(EPFieldPZ, &EPParam{PZ: x.pz}),
		"modify, EVD":        o.ep.Modify(EPFieldRecvEVD, &EPParam{RecvEVD: x.evd}),
		"modify, second EVD": o.ep.Modify(EPFieldPZ|EPFieldConnectEVD, &EPParam{PZ: o.pz, ConnectEVD: x.evd}),
	}
}

var misuseRules = []rule{
	{"every call on nothing is refused", func(t *testing.T, _ network) {
		misused(t, &objects{}, false)
	}},
	{"every call on an object that was freed is refused", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		o := one(a, b)
		o.free(t)
		misused(t, o, true)
	}},
	{"every call on an adapter that was closed, and on its objects, is refused", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		o := one(a, b)
		ok(t, b.ia.Close())
		misused(t, o, false)
	}},
	{"an object that was freed is refused wherever one is named", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x := one(a, b)
		x.free(t)
		b.listen(testQual, 1)
		o := one(a, b)
		for name, err := range naming(o, x) {
			wants(t, name, err, ErrInvalidHandle)
		}
		word := o.lmr.Segment(0, 8)
		wants(t, "bind, LMR", second(o.rmr.Bind(o.ep, Binding{LMR: x.lmr, Segment: word, Priv: MemAll}, 0, 0)), ErrInvalidHandle)
		wants(t, "bind, EP", second(o.rmr.Bind(x.ep, Binding{LMR: o.lmr, Segment: word, Priv: MemAll}, 0, 0)), ErrInvalidHandle)
		wants(t, "dup", o.ep.DupConnect(x.ep, ConnectConfig{Timeout: time.Second}), ErrInvalidHandle)
		wants(t, "adapter, async EVD", second(b.tryReopen(Options{AsyncEVD: x.evd})), ErrInvalidHandle)
		o.free(t) // frees the objects in the usual order, so no object is in use
	}},
	{"objects of another adapter are refused wherever one is named", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		a.listen(testQual, 1)
		o, x := one(a, b), one(b, a)
		for name, err := range naming(o, x) {
			wants(t, name, err, ErrInvalidHandle)
		}
		word := o.lmr.Segment(0, 8)
		wants(t, "bind, LMR", second(o.rmr.Bind(o.ep, Binding{LMR: x.lmr, Segment: word, Priv: MemAll}, 0, 0)), ErrProtectionViolation)
		wants(t, "bind, EP", second(o.rmr.Bind(x.ep, Binding{LMR: o.lmr, Segment: word, Priv: MemAll}, 0, 0)), ErrProtectionViolation)
		wants(t, "adapter, async EVD", second(b.tryReopen(Options{AsyncEVD: a.ia.AsyncEVD()})), ErrInvalidHandle)
		o.free(t) // frees the objects in the usual order, so no object is in use
		x.free(t)
	}},
	{"an event dispatcher of another stream is refused", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		for _, flags := range []EVDFlags{EVDSoftware, EVDCR, EVDDTO, EVDConnection, EVDRMRBind, EVDAsync} {
			evd := must(h.ia.CreateEVD(1, nil, flags))(t)
			for name, tc := range map[string]struct {
				needs EVDFlags
				err   error
			}{
				"receive": {EVDDTO, second(h.ia.CreateEP(h.pz, EPConfig{RecvEVD: evd}))},
				"request": {EVDDTO, second(h.ia.CreateEP(h.pz, EPConfig{RequestEVD: evd}))},
				"connect": {EVDConnection, second(h.ia.CreateEP(h.pz, EPConfig{ConnectEVD: evd}))},
				"PSP":     {EVDCR, second(h.ia.CreatePSP(7, evd, PSPConsumer))},
				"async":   {EVDAsync, second(h.tryReopen(Options{AsyncEVD: evd}))},
			} {
				if flags == tc.needs {
					ok(t, tc.err)
				} else {
					wants(t, fmt.Sprintf("%s, flags %#x", name, uint16(flags)), tc.err, ErrInvalidHandle)
				}
			}
		}
	}},
	{"of many frees at one time one succeeds", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		o := one(a, b)
		for name, free := range map[string]func() error{"CR": func() error { return o.cr.Reject(nil) }, "PSP": o.psp.Free, "RSP": o.rsp.Free,
			"EP": o.ep.Free, "LMR": o.lmr.Free, "RMR": o.rmr.Free, "SRQ": o.srq.Free} {
			raceCalls(t, name, free)
		}
		raceCalls(t, "EVD", o.evd.Free)
		raceCalls(t, "CNO", o.cno.Free)
		raceCalls(t, "PZ", o.pz.Free)
		raceCalls(t, "IA", func() error { return o.ia.Close() })
	}},
}

// raceCalls makes several calls at the same time. It checks that exactly one call succeeds and that the other calls
// return ErrInvalidHandle.
func raceCalls(t *testing.T, name string, call func() error) {
	t.Helper()
	var done atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := call(); err == nil {
				done.Add(1)
			} else {
				wants(t, name, err, ErrInvalidHandle)
			}
		})
	}
	wg.Wait()
	if done.Load() != 1 {
		t.Errorf("%s: %d calls succeeded", name, done.Load())
	}
}

func second[T any](_ T, err error) error { return err }
