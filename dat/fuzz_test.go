package dat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// fuzzCaller makes the calls that the bytes of the fuzz input choose. The objects in these calls may be valid, freed or
// nil, or may belong to the other adapter of the test.
type fuzzCaller struct {
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

// nextByte returns the next byte of the input, or 0 at the end of the input.
func (c *fuzzCaller) nextByte() int {
	if len(c.in) == 0 {
		return 0
	}
	b := c.in[0]
	c.in = c.in[1:]
	return int(b)
}

// pick chooses an object, most often the newest. The first object is nil.
func pick[T any](c *fuzzCaller, from []T) T {
	i := c.nextByte()
	if i < 192 {
		return from[len(from)-1-(i&(i>>2)&3)%max(len(from)-1, 1)]
	}
	return from[i%len(from)]
}

// made stores a new object. The test fails if the call returned both an object and an error, or neither.
func made[T comparable](c *fuzzCaller, to *[]T, v T, err error) error {
	var none T
	if (v == none) != (err != nil) {
		c.t.Fatalf("%T %v and error %v", v, v, err)
	}
	if err == nil && len(*to) < 64 {
		*to = append(*to, v)
	}
	return err
}

// iov returns up to 18 segments, most of which are valid.
func (c *fuzzCaller) iov() []LMRTriplet {
	iov := make([]LMRTriplet, c.nextByte()%19%(1+c.nextByte()%18))
	for i := range iov {
		l := pick(c, c.lmrs)
		if l == nil {
			iov[i] = LMRTriplet{Context: uint32(c.nextByte()), Length: uint32(c.nextByte()), Address: uint64(c.nextByte())}
			continue
		}
		iov[i] = l.Segment(c.nextByte()%70, c.nextByte()%70)
	}
	return iov
}

// segment returns a segment, which may be invalid.
func (c *fuzzCaller) segment() LMRTriplet {
	if iov := c.iov(); len(iov) > 0 {
		return iov[0]
	}
	return LMRTriplet{}
}

// remote returns a range of a region or a window of either side, which most often is valid.
func (c *fuzzCaller) remote() RMRTriplet {
	if c.nextByte()%4 == 1 {
		if p, err := pick(c, c.rmrs).Query(); err == nil {
			return RMRTriplet{p.Context, p.Triplet.Address, uint64(p.Triplet.Length)}
		}
	}
	if l := pick(c, c.lmrs); l != nil {
		return l.Remote(c.nextByte()%70, c.nextByte()%200)
	}
	return RMRTriplet{uint32(c.nextByte()), uint64(c.nextByte()), uint64(c.nextByte())}
}

func (c *fuzzCaller) flags() CompletionFlags {
	return CompletionFlags(c.nextByte() % 16 * (c.nextByte() % 2))
}

// address returns the address of a side, an unused address, or the zero address.
func (c *fuzzCaller) address() netip.Addr {
	if i := c.nextByte() % 4; i < 3 {
		return c.hosts[0].ownedBy.addr(i % 2)
	}
	return []netip.Addr{{}, c.hosts[0].ownedBy.absent(), netip.IPv6Loopback()}[c.nextByte()%3]
}

// attr returns attributes of an endpoint, most of which are valid.
func (c *fuzzCaller) attr() EPAttr {
	a := EPAttr{MaxRecvDTOs: c.nextByte(), MaxRequestDTOs: c.nextByte(), MaxRecvIOV: c.nextByte() % 18, MaxRequestIOV: c.nextByte() % 18,
		MaxRDMAReadIn: c.nextByte() % 130, MaxRDMAReadOut: c.nextByte() % 130, MaxMessageSize: uint32(c.nextByte()), MaxRDMASize: uint32(c.nextByte())}
	if c.nextByte()%4 == 1 {
		a.RecvCompletionFlags, a.RequestCompletionFlags = CompletionFlags(1<<(c.nextByte()%7)), CompletionFlags(1<<(c.nextByte()%7))
		a.MaxRDMAReadIOV, a.MaxRDMAWriteIOV, a.SRQSoftHW = c.nextByte()%18, c.nextByte()%18, c.nextByte()%8-2
	}
	return a
}

// agent returns an agent for a CNO, or nil.
func (c *fuzzCaller) agent() func(*EVD) {
	if c.nextByte()%2 == 0 {
		return nil
	}
	return func(e *EVD) { _, _ = e.Query() }
}

// doneContext returns a context that is done, or nil.
func (c *fuzzCaller) doneContext() context.Context {
	if c.nextByte()%4 == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// took stores the objects of an event.
func (c *fuzzCaller) took(ev *Event, err error) error {
	if err == nil && ev.CR != nil && len(c.crs) < 64 {
		c.crs = append(c.crs, ev.CR)
	}
	return err
}

// moment returns a timeout of 0 or a very short timeout.
func (c *fuzzCaller) moment() time.Duration {
	return time.Duration(c.nextByte()%3) * 100 * time.Microsecond
}

// stableState returns the state that a failed call must not change. It leaves out the state that the network may
// change.
func (c *fuzzCaller) stableState() string {
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
	waiting := map[*EVD]int32{} // reserved service points, which drop their reference to the dispatcher when a request arrives
	for _, r := range c.rsps[1:] {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.state == rspListening {
			waiting[r.evd]++
		}
	}
	for _, e := range c.evds[1:] {
		say("EVD ", e.refs.n.Load()-waiting[e], e.state.Load(), e.qlen.Load(), e.config.Load(), e.cnoEnabled.Load(), e.unwaitable.Load(),
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
		say("CR ", cr.answered)
	}
	for _, ep := range c.eps[1:] {
		say("EP ", ep.freed.Load(), slices.Index(c.pzs, ep.pz), slices.Index(c.evds, ep.recv), slices.Index(c.evds, ep.request),
			slices.Index(c.evds, ep.connect), ep.attr)
		if ep.drv.Load() == nil && ep.holder.Load() == nil {
			recv, request := ep.conn.Idle()
			say(ep.State(), recv, request)
		}
	}
	for _, h := range c.hosts {
		for i := range h.ia.a.objectCounts {
			say("adapter ", i, h.ia.a.objectCounts[i].Load())
		}
		say(len(h.ia.a.sharedMems.byCookie))
	}
	return s.String()
}

// newCaller makes a caller with some objects of each kind, among them a connection and a connection request.
// Inputs of an odd length run in secure mode.
func newCaller(t *testing.T, in []byte) *fuzzCaller {
	if len(in)%2 == 1 {
		useSharedKeys(t)
	}
	a, b := newHosts(t, newSim(t), Options{})
	x, y := pair(a, b, nil)
	evd := must(b.ia.CreateEVD(64, nil, evdAll))(t)
	o := one(a, b)
	c := &fuzzCaller{t: t, in: in, hosts: [2]*host{a, b}, mem: make([]byte, 128), ias: []*IA{nil, a.ia, b.ia}, pzs: []*PZ{nil, a.pz, b.pz},
		lmrs: []*LMR{nil, x.lmr, y.lmr}, evds: []*EVD{nil, x.connect, y.recv, x.request, y.connect, b.cr, o.evd, evd},
		eps: []*EP{nil, o.ep, x.EP, y.EP}, rsps: []*RSP{nil}, crs: []*CR{nil, o.cr}, rmrs: []*RMR{nil}, cnos: []*CNO{nil, o.cno}}
	attr := DefaultEPAttr()
	c.rmrs = append(c.rmrs, must(b.pz.CreateRMR())(t))
	c.srqs = []*SRQ{nil, must(b.ia.CreateSRQ(b.pz, SRQAttr{MaxRecvDTOs: 8}))(t)}
	c.eps = append(c.eps, must(b.ia.CreateEP(b.pz, EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd, SRQ: c.srqs[1], Attr: &attr}))(t))
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

// FuzzCalls: no sequence of calls causes a panic, hangs, or leaves resources behind. Each error is a DAT error, and a
// call that returns an error has changed nothing.
func FuzzCalls(f *testing.F) {
	for i := range calls {
		in := bytes.Repeat([]byte{byte(i), 0, 0, 0, 0, 1, 1, 1, 1, 200}, 30)
		if f.Add(in[i%2:]); !testing.Short() {
			f.Add(in[1-i%2:])
		}
	}
	for seed := range uint64(10) {
		in := make([]byte, 2000)
		fillRandom(in, seed)
		f.Add(in[seed%2:])
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		goroutines := runtime.NumGoroutine()
		t.Run("", func(t *testing.T) { // the end of the sub-test closes the adapters
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

// step makes the next call.
func (c *fuzzCaller) step() {
	which := c.nextByte() % len(calls)
	before, objects := c.stableState(), len(c.crs)
	err := calls[which](c)
	if err == nil {
		return
	}
	var r Return
	if !errors.As(err, &r) || errors.Is(err, ErrInternalError) || unnamed(r) {
		c.t.Fatalf("call %d: error %v", which, err)
	}
	if after := c.stableState(); after != before || len(c.crs) != objects {
		c.t.Fatalf("call %d failed with %v and changed\n%s to\n%s", which, err, before, after)
	}
}

// unnamed reports whether an error has no DAT name.
func unnamed(r Return) bool {
	_, _, err := r.Strings()
	return err != nil
}
