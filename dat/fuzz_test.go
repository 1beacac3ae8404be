package dat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

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
	rsps []*RSP
	crs  []*CR
	srqs []*SRQ
	rmrs []*RMR
	cnos []*CNO
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

// pick chooses an object, the newest most often. The first is none.
func pick[T any](c *caller, from []T) T {
	i := c.next()
	if i < 192 {
		return from[len(from)-1-(i&(i>>2)&3)%max(len(from)-1, 1)]
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

// segment is one of those, which may be wrong too.
func (c *caller) segment() LMRTriplet {
	if iov := c.iov(); len(iov) > 0 {
		return iov[0]
	}
	return LMRTriplet{}
}

// remote is a range of somebody's memory, or of a window on it, most often one that is.
func (c *caller) remote() RMRTriplet {
	if c.next()%4 == 1 {
		if p, err := pick(c, c.rmrs).Query(); err == nil {
			return RMRTriplet{p.Context, p.Triplet.Address, uint64(p.Triplet.Length)}
		}
	}
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

// attr are attributes of an endpoint, of which most are right.
func (c *caller) attr() EPAttr {
	a := EPAttr{MaxRecvDTOs: c.next(), MaxRequestDTOs: c.next(), MaxRecvIOV: c.next() % 18, MaxRequestIOV: c.next() % 18,
		MaxRDMAReadIn: c.next() % 130, MaxRDMAReadOut: c.next() % 130, MaxMessageSize: uint32(c.next()), MaxRDMASize: uint32(c.next())}
	if c.next()%4 == 1 {
		a.RecvCompletionFlags, a.RequestCompletionFlags = CompletionFlags(1<<(c.next()%7)), CompletionFlags(1<<(c.next()%7))
		a.MaxRDMAReadIOV, a.MaxRDMAWriteIOV, a.SRQSoftHW = c.next()%18, c.next()%18, c.next()%8-2
	}
	return a
}

// agent is an agent for a notification object, or none.
func (c *caller) agent() func(*EVD) {
	if c.next()%2 == 0 {
		return nil
	}
	return func(e *EVD) { _, _ = e.Query() }
}

// over is a context that is done, or none.
func (c *caller) over() context.Context {
	if c.next()%4 == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// took keeps what an event brings.
func (c *caller) took(ev *Event, err error) error {
	if err == nil && ev.CR != nil && len(c.crs) < 64 {
		c.crs = append(c.crs, ev.CR)
	}
	return err
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
	func(c *caller) error { var ev Event; return c.took(&ev, pick(c, c.evds).Dequeue(&ev)) },
	func(c *caller) error {
		var ev Event
		return c.took(&ev, second(pick(c, c.evds).Wait(c.moment(), c.next()%4, &ev)))
	},
	func(c *caller) error {
		a := c.attr()
		attr := &a
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
		o := objects{pick(c, c.ias), pick(c, c.pzs), pick(c, c.evds), pick(c, c.lmrs), pick(c, c.eps), pick(c, c.psps),
			pick(c, c.rsps), pick(c, c.crs), pick(c, c.srqs), pick(c, c.rmrs), pick(c, c.cnos)}
		h := o.all()[c.next()%len(o.all())]
		return errors.Join(h.SetConsumerContext(c), second(h.ConsumerContext()), second(h.HandleType()))
	},
	func(c *caller) error { _, err := pick(c, c.ias).Query(); return err },
	func(c *caller) error {
		return errors.Join(second(pick(c, c.ias).Stats()), pick(c, c.ias).Dump(io.Discard))
	},
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

	// Notification.
	func(c *caller) error {
		cno, err := pick(c, c.ias).CreateCNO(c.agent())
		return made(c, &c.cnos, cno, err)
	},
	func(c *caller) error { return pick(c, c.cnos).Free() },
	func(c *caller) error { return second(pick(c, c.cnos).Query()) },
	func(c *caller) error { return pick(c, c.cnos).ModifyAgent(c.agent()) },
	func(c *caller) error { return second(pick(c, c.cnos).Wait(c.moment())) },
	func(c *caller) error { return second(pick(c, c.cnos).WaitContext(c.over())) },
	func(c *caller) error { return second(pick(c, c.cnos).Trigger()) },
	func(c *caller) error {
		e, err := pick(c, c.ias).CreateEVD(1+c.next(), pick(c, c.cnos), evdAll)
		return made(c, &c.evds, e, err)
	},
	func(c *caller) error { return pick(c, c.evds).ModifyCNO(pick(c, c.cnos)) },
	func(c *caller) error { return pick(c, c.evds).Enable() },
	func(c *caller) error { return pick(c, c.evds).Disable() },
	func(c *caller) error { return pick(c, c.evds).SetUnwaitable() },
	func(c *caller) error { return pick(c, c.evds).ClearUnwaitable() },
	func(c *caller) error { return pick(c, c.evds).Resize(c.next() - 1) },
	func(c *caller) error { return pick(c, c.evds).PostSE(c) },
	func(c *caller) error { return second(pick(c, c.evds).Query()) },
	func(c *caller) error {
		var ev Event
		return c.took(&ev, second(pick(c, c.evds).WaitContext(c.over(), c.next()%4, &ev)))
	},
	func(c *caller) error { return pick(c, c.evds).Dequeue(nil) },

	// Service points and requests.
	func(c *caller) error {
		p, err := pick(c, c.ias).CreatePSPAny(pick(c, c.evds), PSPFlags(c.next()%3))
		return made(c, &c.psps, p, err)
	},
	func(c *caller) error { return second(pick(c, c.psps).Query()) },
	func(c *caller) error {
		r, err := pick(c, c.ias).CreateRSP(ConnQual(c.next()%3), pick(c, c.eps), pick(c, c.evds))
		return made(c, &c.rsps, r, err)
	},
	func(c *caller) error {
		r, err := pick(c, c.ias).CreateRSP(ConnQual(c.next()%3), nil, pick(c, c.evds))
		return made(c, &c.rsps, r, err)
	},
	func(c *caller) error { return second(pick(c, c.rsps).Query()) },
	func(c *caller) error { return pick(c, c.rsps).Free() },
	func(c *caller) error { return pick(c, c.crs).Handoff(ConnQual(c.next() % 3)) },
	func(c *caller) error { return pick(c, c.crs).Accept(nil, nil) },
	func(c *caller) error { // the request's endpoint is one to call too
		p, err := pick(c, c.crs).Query()
		if ep := p.LocalEP; ep != nil && !slices.Contains(c.eps, ep) {
			return made(c, &c.eps, ep, err)
		}
		return err
	},

	// Endpoints.
	func(c *caller) error { return second(pick(c, c.eps).Query()) },
	func(c *caller) error {
		p := &EPParam{PZ: pick(c, c.pzs), RecvEVD: pick(c, c.evds), RequestEVD: pick(c, c.evds), ConnectEVD: pick(c, c.evds)}
		mask := EPMask(c.next()<<7) & epHandles
		if c.next()%2 == 0 {
			p.Attr, mask = c.attr(), mask|EPMask(c.next()|c.next()<<8|c.next()<<16)<<12
		}
		if c.next() > 250 {
			return pick(c, c.eps).Modify(mask, nil)
		}
		return pick(c, c.eps).Modify(mask, p)
	},
	func(c *caller) error {
		return pick(c, c.eps).Modify(EPMask(1)<<(c.next()%64), &EPParam{Attr: c.attr()})
	},
	func(c *caller) error {
		return pick(c, c.eps).ConnectQoS(c.address(), ConnQual(c.next()%3), c.moment()*100-time.Nanosecond, nil, QoS(c.next()%2), ConnectFlags(c.next()%5))
	},
	func(c *caller) error {
		return pick(c, c.eps).DupConnect(pick(c, c.eps), c.moment()*100-time.Nanosecond, make([]byte, c.next()), QoS(c.next()%3*16))
	},
	func(c *caller) error { _, _, err := pick(c, c.eps).RecvQuery(); return err },
	func(c *caller) error { return pick(c, c.eps).SetWatermark(c.next()%8-2, c.next()%8-2) },
	func(c *caller) error {
		return pick(c, c.eps).PostSendWithInvalidate(c.iov(), uint64(c.next()), c.flags(), c.next()%2 == 0, c.remote().Context)
	},
	func(c *caller) error {
		return pick(c, c.eps).PostRDMAReadToRMR(c.remote(), uint64(c.next()), c.remote(), c.flags())
	},
	func(c *caller) error {
		return pick(c, c.eps).PostRDMAWriteImm(c.iov(), uint64(c.next()), c.remote(), uint32(c.next()), c.flags())
	},
	func(c *caller) error {
		return pick(c, c.eps).PostFetchAdd(uint64(c.next()), c.segment(), uint64(c.next()), c.remote(), c.flags())
	},
	func(c *caller) error {
		return pick(c, c.eps).PostCmpSwap(0, uint64(c.next()), c.segment(), uint64(c.next()), c.remote(), c.flags())
	},

	// Shared receive queues and windows.
	func(c *caller) error {
		q, err := pick(c, c.ias).CreateSRQ(pick(c, c.pzs), SRQAttr{c.next() - 1, c.next() % 20, c.next() / 255})
		return made(c, &c.srqs, q, err)
	},
	func(c *caller) error { return pick(c, c.srqs).Free() },
	func(c *caller) error { return second(pick(c, c.srqs).Query()) },
	func(c *caller) error { return pick(c, c.srqs).Resize(c.next() - 1) },
	func(c *caller) error { return pick(c, c.srqs).SetLW(c.next() - 1) },
	func(c *caller) error { return pick(c, c.srqs).PostRecv(c.iov(), uint64(c.next())) },
	func(c *caller) error {
		a := c.attr()
		ep, err := pick(c, c.ias).CreateEPWithSRQ(pick(c, c.pzs), pick(c, c.evds), pick(c, c.evds), pick(c, c.evds), pick(c, c.srqs), &a)
		return made(c, &c.eps, ep, err)
	},
	func(c *caller) error { r, err := pick(c, c.pzs).CreateRMR(); return made(c, &c.rmrs, r, err) },
	func(c *caller) error { r, err := pick(c, c.pzs).CreateRMRForEP(); return made(c, &c.rmrs, r, err) },
	func(c *caller) error { return pick(c, c.rmrs).Free() },
	func(c *caller) error { return second(pick(c, c.rmrs).Query()) },
	func(c *caller) error {
		return second(pick(c, c.rmrs).Bind(pick(c, c.lmrs), c.segment(), MemPriv(c.next()), pick(c, c.eps), uint64(c.next()), c.flags()))
	},
	func(c *caller) error { // all of it right but for the objects
		l, seg := pick(c, c.lmrs), LMRTriplet{}
		if l != nil {
			seg = l.Segment(0, 1)
		}
		return second(pick(c, c.rmrs).Bind(l, seg, MemRemoteRead|MemRemoteWrite, pick(c, c.eps), 0, 0))
	},
}

// known is what is there: no call that fails changes it. What the network may change is left out.
func (c *caller) known() string {
	var s strings.Builder
	say := func(what ...any) { fmt.Fprint(&s, what...); s.WriteByte('\n') }
	for _, ia := range c.ias[1:] {
		ia.mu.Lock()
		say("IA ", ia.closed, len(ia.pzs), len(ia.lmrs), len(ia.rmrs), len(ia.evds), len(ia.eps), len(ia.psps), len(ia.rsps),
			len(ia.srqs), len(ia.cnos))
		ia.mu.Unlock()
	}
	for _, pz := range c.pzs[1:] {
		say("PZ ", pz.refs.n.Load())
	}
	waiting := map[*EVD]int32{} // reserved service points that let go of their dispatchers when a request comes
	for _, r := range c.rsps[1:] {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.state == rspListening {
			waiting[r.evd]++
		}
	}
	for _, e := range c.evds[1:] {
		say("EVD ", e.refs.n.Load()-waiting[e], e.state.Load(), e.qlen.Load(), e.config.Load(), e.enabled.Load(), e.unwaitable.Load(),
			slices.Index(c.cnos, e.cno.Load()))
	}
	for _, cno := range c.cnos[1:] {
		cno.mu.Lock()
		say("CNO ", cno.dead, len(cno.evds), len(cno.waiters))
		cno.mu.Unlock()
	}
	for _, q := range c.srqs[1:] {
		depth, low := q.q.Config()
		say("SRQ ", q.freed.Load(), q.refs.n.Load(), depth, low)
	}
	for _, r := range c.rmrs[1:] {
		say("RMR ", r.freed.Load())
	}
	for _, cr := range c.crs[1:] {
		say("CR ", cr.over)
	}
	for _, ep := range c.eps[1:] {
		say("EP ", ep.freed.Load(), slices.Index(c.pzs, ep.pz), slices.Index(c.evds, ep.recv), slices.Index(c.evds, ep.request),
			slices.Index(c.evds, ep.connect), ep.attr)
		if ep.drv.Load() == nil && ep.hold.Load() == nil {
			recv, request := ep.conn.Idle()
			say(ep.State(), recv, request)
		}
	}
	for _, h := range c.hosts {
		for i := range h.ia.a.count {
			say("adapter ", i, h.ia.a.count[i].Load())
		}
		say(len(h.ia.a.sharing.memory))
	}
	return s.String()
}

// newCaller makes a caller with some objects of each kind: a connection, and a request for each way to
// answer one.
func newCaller(t *testing.T, in []byte) *caller {
	a, b := newHosts(t, newSim(t), Options{})
	x, y := pair(a, b, nil)
	evd := must(b.ia.CreateEVD(64, nil, evdAll))(t)
	o := one(a, b)
	c := &caller{t: t, in: in, hosts: [2]*host{a, b}, mem: make([]byte, 128), ias: []*IA{nil, a.ia, b.ia}, pzs: []*PZ{nil, a.pz, b.pz},
		lmrs: []*LMR{nil, x.lmr, y.lmr}, evds: []*EVD{nil, x.connect, y.recv, x.request, y.connect, b.cr, o.evd, evd},
		eps: []*EP{nil, o.ep, x.EP, y.EP}, rsps: []*RSP{nil}, crs: []*CR{nil, o.cr}, rmrs: []*RMR{nil}, cnos: []*CNO{nil, o.cno}}
	attr := DefaultEPAttr()
	c.rmrs = append(c.rmrs, must(b.pz.CreateRMR())(t))
	c.srqs = []*SRQ{nil, must(b.ia.CreateSRQ(b.pz, SRQAttr{MaxRecvDTOs: 8}))(t)}
	c.eps = append(c.eps, must(b.ia.CreateEPWithSRQ(b.pz, evd, evd, evd, c.srqs[1], &attr))(t))
	c.psps = []*PSP{nil, b.psp, must(b.ia.CreatePSP(0, evd, PSPConsumer))(t), must(b.ia.CreatePSP(1, evd, PSPProvider))(t)}
	c.rsps = append(c.rsps, must(b.ia.CreateRSP(2, nil, evd))(t))
	for qual := range ConnQual(3) {
		ok(t, a.point(nil).Connect(b.addr, qual, patience, nil))
		cr := await(t, evd, EventConnectionRequest).CR
		if ep := must(cr.Query())(t).LocalEP; ep != nil {
			ok(t, ep.Modify(epHandles, &EPParam{PZ: b.pz, RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd}))
			c.eps = append(c.eps, ep)
		}
		c.crs = append(c.crs, cr)
	}
	return c
}

// FuzzCalls: no sequence of calls panics, hangs or leaves something behind; an error is one of DAT, and
// nothing has changed after it.
func FuzzCalls(f *testing.F) {
	for i := range calls {
		f.Add(bytes.Repeat([]byte{byte(i), 0, 0, 0, 0, 1, 1, 1, 1, 200}, 30))
	}
	for seed := range uint64(10) {
		in := make([]byte, 2000)
		fillRandom(in, seed)
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		goroutines := runtime.NumGoroutine()
		t.Run("", func(t *testing.T) { // its end closes the adapters
			c := newCaller(t, in)
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
	if !errors.As(err, &r) || errors.Is(err, ErrInternalError) || unnamed(r) {
		c.t.Fatalf("call %d: error %v", which, err)
	}
	if after := c.known(); after != before || len(c.crs) != objects {
		c.t.Fatalf("call %d failed with %v and changed\n%s to\n%s", which, err, before, after)
	}
}

// unnamed reports a return that has no DAT name.
func unnamed(r Return) bool {
	_, _, err := r.Strings()
	return err != nil
}
