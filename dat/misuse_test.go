package dat

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// objects are one of each kind; any may be nil.
type objects struct {
	ia  *IA
	pz  *PZ
	evd *EVD
	lmr *LMR
	ep  *EP
	psp *PSP
	cr  *CR
}

// misuses are the calls of each object, as they would be right but for the object.
var misuses = map[string]func(o *objects, ev *Event) error{
	"IA.Query":            func(o *objects, _ *Event) error { _, err := o.ia.Query(); return err },
	"IA.Stats":            func(o *objects, _ *Event) error { _, err := o.ia.Stats(); return err },
	"IA.Close":            func(o *objects, _ *Event) error { return o.ia.Close(CloseAbrupt) },
	"IA.HandleType":       func(o *objects, _ *Event) error { _, err := o.ia.HandleType(); return err },
	"IA.CreatePZ":         func(o *objects, _ *Event) error { _, err := o.ia.CreatePZ(); return err },
	"IA.CreateEVD":        func(o *objects, _ *Event) error { _, err := o.ia.CreateEVD(1, nil, EVDDTO); return err },
	"IA.SyncRDMARead":     func(o *objects, _ *Event) error { return o.ia.SyncRDMARead(nil) },
	"IA.SyncRDMAWrite":    func(o *objects, _ *Event) error { return o.ia.SyncRDMAWrite(nil) },
	"PZ.CreateLMR":        func(o *objects, _ *Event) error { _, err := o.ia.CreateLMR(make([]byte, 1), o.pz, 0); return err },
	"PZ.CreateEP":         func(o *objects, _ *Event) error { _, err := o.ia.CreateEP(o.pz, nil, nil, nil, nil); return err },
	"PZ.Query":            func(o *objects, _ *Event) error { _, err := o.pz.Query(); return err },
	"PZ.Free":             func(o *objects, _ *Event) error { return o.pz.Free() },
	"EVD.CreatePSP":       func(o *objects, _ *Event) error { _, err := o.ia.CreatePSP(1, o.evd, PSPConsumer); return err },
	"EVD.Dequeue":         func(o *objects, ev *Event) error { return o.evd.Dequeue(ev) },
	"EVD.Wait":            func(o *objects, ev *Event) error { _, err := o.evd.Wait(0, 1, ev); return err },
	"EVD.HandleType":      func(o *objects, _ *Event) error { _, err := o.evd.HandleType(); return err },
	"EVD.Free":            func(o *objects, _ *Event) error { return o.evd.Free() },
	"LMR.Query":           func(o *objects, _ *Event) error { _, err := o.lmr.Query(); return err },
	"LMR.Free":            func(o *objects, _ *Event) error { return o.lmr.Free() },
	"LMR.CreateLMR":       func(o *objects, _ *Event) error { _, err := o.ia.CreateLMRFromLMR(o.lmr, o.pz, 0); return err },
	"EP.Status":           func(o *objects, _ *Event) error { _, _, _, err := o.ep.Status(); return err },
	"EP.Connect":          func(o *objects, _ *Event) error { return o.ep.Connect(netip.IPv6Loopback(), 1, time.Second, nil) },
	"EP.Disconnect":       func(o *objects, _ *Event) error { return o.ep.Disconnect(CloseAbrupt) },
	"EP.Reset":            func(o *objects, _ *Event) error { return o.ep.Reset() },
	"EP.Free":             func(o *objects, _ *Event) error { return o.ep.Free() },
	"EP.PostRecv":         func(o *objects, _ *Event) error { return o.ep.PostRecv(nil, 0, 0) },
	"EP.PostSend":         func(o *objects, _ *Event) error { return o.ep.PostSend(nil, 0, 0) },
	"EP.PostRDMAWrite":    func(o *objects, _ *Event) error { return o.ep.PostRDMAWrite(nil, 0, RMRTriplet{}, 0) },
	"EP.PostRDMARead":     func(o *objects, _ *Event) error { return o.ep.PostRDMARead(nil, 0, RMRTriplet{}, 0) },
	"EP.ConsumerContext":  func(o *objects, _ *Event) error { _, err := o.ep.ConsumerContext(); return err },
	"PSP.ConsumerContext": func(o *objects, _ *Event) error { return o.psp.SetConsumerContext(1) },
	"PSP.Free":            func(o *objects, _ *Event) error { return o.psp.Free() },
	"CR.Query":            func(o *objects, _ *Event) error { _, err := o.cr.Query(); return err },
	"CR.Accept":           func(o *objects, _ *Event) error { return o.cr.Accept(o.ep, nil) },
	"CR.Reject":           func(o *objects, _ *Event) error { return o.cr.Reject(nil) },
}

// one makes an object of each kind; the request is from a to b.
func one(a, b *host) *objects {
	t := a.t
	t.Helper()
	o := &objects{ia: b.ia, psp: b.psp}
	o.pz = must(b.ia.CreatePZ())(t)
	o.evd = must(b.ia.CreateEVD(8, nil, EVDDTO|EVDConnection|EVDCR))(t)
	o.lmr = must(b.ia.CreateLMR(make([]byte, 8), o.pz, MemAll))(t)
	o.ep = must(b.ia.CreateEP(o.pz, o.evd, o.evd, o.evd, nil))(t)
	a.point(nil).dial(b, nil)
	o.cr = b.request(t)
	return o
}

// free frees all but the adapter.
func (o *objects) free(t testing.TB) {
	t.Helper()
	ok(t, o.cr.Reject(nil))
	for _, f := range []interface{ Free() error }{o.psp, o.ep, o.lmr, o.evd, o.pz} {
		ok(t, f.Free())
	}
}

// misused proves that every call is answered with ErrInvalidHandle.
func misused(t *testing.T, o *objects, but ...string) {
	t.Helper()
	left := map[string]bool{}
	for _, name := range but {
		left[name] = true
	}
	var ev Event
	for name, call := range misuses {
		if !left[name] {
			wants(t, name, call(o, &ev), ErrInvalidHandle)
		}
	}
}

var misuseRules = []rule{
	{"every call on nothing is refused", func(t *testing.T, _ network) {
		misused(t, &objects{})
	}},
	{"every call on an object that was freed is refused", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		o := one(a, b)
		o.free(t)
		misused(t, o, "IA.Query", "IA.Stats", "IA.Close", "IA.HandleType", "IA.CreatePZ", "IA.CreateEVD", "IA.SyncRDMARead", "IA.SyncRDMAWrite")
	}},
	{"every call on an adapter that was closed, and on its objects, is refused", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		o := one(a, b)
		ok(t, b.ia.Close(CloseAbrupt))
		misused(t, o)
	}},
	{"objects of another adapter are refused wherever one is named", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		o, cr := one(a, b), must(a.ia.CreateEVD(1, nil, EVDCR))(t)
		evd := must(a.ia.CreateEVD(1, nil, EVDDTO|EVDConnection))(t)
		for name, err := range map[string]error{
			"LMR, zone":          second(b.ia.CreateLMR(make([]byte, 1), a.pz, 0)),
			"LMR, LMR":           second(a.ia.CreateLMRFromLMR(o.lmr, a.pz, 0)),
			"LMR shared, zone":   second(b.ia.CreateLMRShared(make([]byte, 1), LMRCookie{}, a.pz, 0)),
			"EP, zone":           second(b.ia.CreateEP(a.pz, nil, nil, nil, nil)),
			"EP, receive EVD":    second(b.ia.CreateEP(o.pz, evd, nil, nil, nil)),
			"EP, request EVD":    second(b.ia.CreateEP(o.pz, nil, evd, nil, nil)),
			"EP, connect EVD":    second(b.ia.CreateEP(o.pz, nil, nil, evd, nil)),
			"PSP, EVD":           second(b.ia.CreatePSP(7, cr, PSPConsumer)),
			"CR, EP":             o.cr.Accept(a.point(nil).EP, nil),
			"adapter, async EVD": second(b.tryReopen(Options{AsyncEVD: a.ia.AsyncEVD()})),
		} {
			wants(t, name, err, ErrInvalidHandle)
		}
		ok(t, o.cr.Accept(o.ep, nil)) // the request is as it was
	}},
	{"an event dispatcher of another stream is refused", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		for _, flags := range []EVDFlags{EVDSoftware, EVDCR, EVDDTO, EVDConnection, EVDRMRBind, EVDAsync} {
			evd := must(h.ia.CreateEVD(1, nil, flags))(t)
			for name, tc := range map[string]struct {
				needs EVDFlags
				err   error
			}{
				"receive": {EVDDTO, second(h.ia.CreateEP(h.pz, evd, nil, nil, nil))},
				"request": {EVDDTO, second(h.ia.CreateEP(h.pz, nil, evd, nil, nil))},
				"connect": {EVDConnection, second(h.ia.CreateEP(h.pz, nil, nil, evd, nil))},
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
		for name, free := range map[string]func() error{"CR": func() error { return o.cr.Reject(nil) }, "PSP": o.psp.Free,
			"EP": o.ep.Free, "LMR": o.lmr.Free} {
			racing(t, name, free)
		}
		racing(t, "EVD", o.evd.Free)
		racing(t, "PZ", o.pz.Free)
		racing(t, "IA", func() error { return o.ia.Close(CloseAbrupt) })
	}},
}

// racing proves that of several calls at one time one succeeds, and the others find nothing.
func racing(t *testing.T, name string, call func() error) {
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

// caller makes calls as bytes tell it, with objects that are live, freed, of the other adapter or nil.
type caller struct {
	t     *testing.T
	in    []byte
	hosts [2]*host
	mem   []byte

	ias  []*IA
	pzs  []*PZ
	lmrs []*LMR
	evds []*EVD
	eps  []*EP
	psps []*PSP
	crs  []*CR
}

// next is the next byte, 0 at the end.
func (c *caller) next() int {
	if len(c.in) == 0 {
		return 0
	}
	b := c.in[0]
	c.in = c.in[1:]
	return int(b)
}

// pick chooses an object, the newest most often.
func pick[T any](c *caller, from []T) T {
	i := c.next()
	if i < 128 {
		return from[len(from)-1-i%min(len(from), 4)]
	}
	return from[i%len(from)]
}

// made keeps a new object. One that comes with an error, or nothing without, is a fault.
func made[T comparable](c *caller, to *[]T, v T, err error) error {
	var none T
	if (v == none) != (err != nil) {
		c.t.Fatalf("%T %v and error %v", v, v, err)
	}
	if err == nil && len(*to) < 64 {
		*to = append(*to, v)
	}
	return err
}

// iov is up to 18 segments, of which most are right.
func (c *caller) iov() []LMRTriplet {
	iov := make([]LMRTriplet, c.next()%19%(1+c.next()%18))
	for i := range iov {
		l := pick(c, c.lmrs)
		if l == nil {
			iov[i] = LMRTriplet{Context: uint32(c.next()), Length: uint32(c.next()), Address: uint64(c.next())}
			continue
		}
		iov[i] = l.Segment(c.next()%70, c.next()%70)
	}
	return iov
}

// remote is a range of somebody's memory, most often one that is.
func (c *caller) remote() RMRTriplet {
	if l := pick(c, c.lmrs); l != nil {
		return l.Remote(c.next()%70, c.next()%200)
	}
	return RMRTriplet{uint32(c.next()), uint64(c.next()), uint64(c.next())}
}

func (c *caller) flags() CompletionFlags { return CompletionFlags(c.next() % 16 * (c.next() % 2)) }

// address is that of a side, of nobody, or none.
func (c *caller) address() netip.Addr {
	if i := c.next() % 4; i < 3 {
		return c.hosts[0].ownedBy.addr(i % 2)
	}
	return []netip.Addr{{}, c.hosts[0].ownedBy.absent(), netip.IPv6Loopback()}[c.next()%3]
}

// moment is a time that a call may wait: none, or too short.
func (c *caller) moment() time.Duration { return time.Duration(c.next()%3) * 100 * time.Microsecond }

// calls are what a caller can do.
var calls = []func(c *caller) error{
	func(c *caller) error { pz, err := pick(c, c.ias).CreatePZ(); return made(c, &c.pzs, pz, err) },
	func(c *caller) error { return pick(c, c.pzs).Free() },
	func(c *caller) error { _, err := pick(c, c.pzs).Query(); return err },
	func(c *caller) error {
		n := c.next() % (len(c.mem) + 1)
		l, err := pick(c, c.ias).CreateLMR(c.mem[:n], pick(c, c.pzs), MemPriv(c.next()&0x73))
		return made(c, &c.lmrs, l, err)
	},
	func(c *caller) error {
		l, err := pick(c, c.ias).CreateLMRFromLMR(pick(c, c.lmrs), pick(c, c.pzs), MemAll)
		return made(c, &c.lmrs, l, err)
	},
	func(c *caller) error {
		n := c.next() % (len(c.mem) + 1)
		l, err := pick(c, c.ias).CreateLMRShared(c.mem[:n], LMRCookie{byte(c.next() % 3)}, pick(c, c.pzs), MemAll)
		return made(c, &c.lmrs, l, err)
	},
	func(c *caller) error { return pick(c, c.lmrs).Free() },
	func(c *caller) error { _, err := pick(c, c.lmrs).Query(); return err },
	func(c *caller) error { return pick(c, c.ias).SyncRDMAWrite(c.iov()) },
	func(c *caller) error {
		e, err := pick(c, c.ias).CreateEVD(c.next()-1, nil, EVDFlags(c.next()<<4|c.next()&1))
		return made(c, &c.evds, e, err)
	},
	func(c *caller) error { return pick(c, c.evds).Free() },
	func(c *caller) error {
		var ev Event
		err := pick(c, c.evds).Dequeue(&ev)
		if err == nil && ev.CR != nil && len(c.crs) < 64 {
			c.crs = append(c.crs, ev.CR)
		}
		return err
	},
	func(c *caller) error {
		var ev Event
		_, err := pick(c, c.evds).Wait(c.moment(), c.next()%4, &ev)
		if err == nil && ev.CR != nil && len(c.crs) < 64 {
			c.crs = append(c.crs, ev.CR)
		}
		return err
	},
	func(c *caller) error {
		attr := &EPAttr{MaxRecvDTOs: c.next(), MaxRequestDTOs: c.next(), MaxRecvIOV: c.next() % 20, MaxRequestIOV: c.next() % 20,
			MaxRDMAReadIn: c.next(), MaxRDMAReadOut: c.next(), MaxMessageSize: uint32(c.next()), MaxRDMASize: uint32(c.next())}
		if c.next()%2 == 0 {
			attr = nil
		}
		ep, err := pick(c, c.ias).CreateEP(pick(c, c.pzs), pick(c, c.evds), pick(c, c.evds), pick(c, c.evds), attr)
		return made(c, &c.eps, ep, err)
	},
	func(c *caller) error { return pick(c, c.eps).Free() },
	func(c *caller) error { _, _, _, err := pick(c, c.eps).Status(); return err },
	func(c *caller) error {
		return pick(c, c.eps).Connect(c.address(), ConnQual(c.next()%3), c.moment()*100-time.Nanosecond, make([]byte, c.next()*2))
	},
	func(c *caller) error { return pick(c, c.eps).Disconnect(CloseFlags(c.next() % 3)) },
	func(c *caller) error { return pick(c, c.eps).Reset() },
	func(c *caller) error { return pick(c, c.eps).PostRecv(c.iov(), uint64(c.next()), c.flags()) },
	func(c *caller) error { return pick(c, c.eps).PostSend(c.iov(), uint64(c.next()), c.flags()) },
	func(c *caller) error {
		return pick(c, c.eps).PostRDMAWrite(c.iov(), uint64(c.next()), c.remote(), c.flags())
	},
	func(c *caller) error {
		return pick(c, c.eps).PostRDMARead(c.iov(), uint64(c.next()), c.remote(), c.flags())
	},
	func(c *caller) error {
		p, err := pick(c, c.ias).CreatePSP(ConnQual(c.next()%3), pick(c, c.evds), PSPFlags(c.next()%3))
		return made(c, &c.psps, p, err)
	},
	func(c *caller) error { return pick(c, c.psps).Free() },
	func(c *caller) error { _, err := pick(c, c.crs).Query(); return err },
	func(c *caller) error { return pick(c, c.crs).Accept(pick(c, c.eps), make([]byte, c.next()*2)) },
	func(c *caller) error { return pick(c, c.crs).Reject(make([]byte, c.next()*2)) },
	func(c *caller) error {
		h := []Handle{pick(c, c.ias), pick(c, c.pzs), pick(c, c.lmrs), pick(c, c.evds), pick(c, c.eps), pick(c, c.psps), pick(c, c.crs)}[c.next()%7]
		return errors.Join(h.SetConsumerContext(c), second(h.ConsumerContext()), second(h.HandleType()))
	},
	func(c *caller) error { _, err := pick(c, c.ias).Query(); return err },
	func(c *caller) error { _, err := pick(c, c.ias).Stats(); return err },
	func(c *caller) error {
		ia, err := c.hosts[c.next()%2].tryReopen(Options{AsyncEVD: pick(c, c.evds), AsyncQLen: c.next() - 1, NoAsyncEVD: c.next()%2 == 0})
		return made(c, &c.ias, ia, err)
	},
	func(c *caller) error {
		ia := pick(c, c.ias)
		if ia == c.hosts[0].ia || ia == c.hosts[1].ia {
			return nil // the adapters stay
		}
		return ia.Close(CloseFlags(c.next() % 3))
	},
}

// known is what is there: no call that fails changes it.
func (c *caller) known() string {
	s := ""
	for _, ia := range c.ias {
		if ia == nil {
			continue
		}
		ia.mu.Lock()
		s += fmt.Sprint(ia.closed, len(ia.pzs), len(ia.lmrs), len(ia.evds), len(ia.eps), len(ia.psps), " ")
		ia.mu.Unlock()
	}
	for _, pz := range c.pzs[1:] {
		s += fmt.Sprint(pz.refs.n.Load(), " ")
	}
	for _, e := range c.evds[1:] {
		s += fmt.Sprint(e.refs.n.Load(), e.state.Load(), " ")
	}
	for _, ep := range c.eps[1:] {
		if s += fmt.Sprint(ep.freed.Load()); ep.drv.Load() == nil { // else the network may change it
			recv, request := ep.conn.Idle()
			s += fmt.Sprint(ep.State(), recv, request, " ")
		}
	}
	for _, h := range c.hosts {
		for i := range h.ia.a.count {
			s += fmt.Sprint(h.ia.a.count[i].Load(), " ")
		}
	}
	return s
}

// FuzzCalls: no sequence of calls panics, hangs or leaves something behind; an error is one of DAT, and
// nothing has changed after it.
func FuzzCalls(f *testing.F) {
	for i := range calls {
		f.Add(bytes.Repeat([]byte{byte(i), 0, 0, 0, 0, 1, 1, 1, 1, 200}, 30))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		goroutines := runtime.NumGoroutine()
		t.Run("", func(t *testing.T) { // its end closes the adapters
			a, b := newHosts(t, newSim(t), Options{})
			x, y := pair(a, b, nil)
			c := &caller{t: t, in: in, hosts: [2]*host{a, b}, mem: make([]byte, 128), ias: []*IA{nil, a.ia, b.ia},
				pzs: []*PZ{nil, a.pz, b.pz}, lmrs: []*LMR{nil, x.lmr, y.lmr}, psps: []*PSP{nil, b.psp}, crs: []*CR{nil},
				evds: []*EVD{nil, b.cr, y.connect, x.request, y.recv, x.connect}, eps: []*EP{nil, y.EP, x.EP}}
			for range 300 {
				if len(c.in) == 0 {
					break
				}
				c.step()
			}
		})
		if err := leftAdapters(); err != nil {
			t.Error(err)
		}
		eventually(t, "the end of the goroutines", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
	})
}

// step makes one call.
func (c *caller) step() {
	which := c.next() % len(calls)
	before, objects := c.known(), len(c.crs)
	err := calls[which](c)
	if err == nil {
		return
	}
	var r Return
	if !errors.As(err, &r) || errors.Is(err, ErrInternalError) {
		c.t.Fatalf("call %d: error %v", which, err)
	}
	if after := c.known(); after != before || len(c.crs) != objects {
		c.t.Fatalf("call %d failed with %v and changed\n%s to\n%s", which, err, before, after)
	}
}
