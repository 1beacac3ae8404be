package dat

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/datxdp/datxdp/link"
)

// A post is one of the calls that transfer data. Rules that hold for several of them are written once.
type post struct {
	op    DTO
	flags CompletionFlags // the legal flags
	post  func(x *point, iov []LMRTriplet, cookie uint64, f CompletionFlags) error
}

var (
	postSend = post{DTOSend, CompletionSuppress | CompletionSolicitedWait | CompletionBarrierFence,
		func(x *point, iov []LMRTriplet, cookie uint64, f CompletionFlags) error {
			return x.PostSend(iov, cookie, f)
		}}
	postRecv = post{DTOReceive, 0, func(x *point, iov []LMRTriplet, cookie uint64, f CompletionFlags) error {
		return x.PostRecv(iov, cookie, f)
	}}
	postWrite = post{DTORDMAWrite, CompletionSuppress | CompletionBarrierFence,
		func(x *point, iov []LMRTriplet, cookie uint64, f CompletionFlags) error {
			return x.PostRDMAWrite(iov, cookie, RMRTriplet{x.peer.lmr.RMRContext(), x.peer.lmr.Address(), math.MaxUint32}, f)
		}}
	postRead = post{DTORDMARead, CompletionSuppress | CompletionBarrierFence,
		func(x *point, iov []LMRTriplet, cookie uint64, f CompletionFlags) error {
			return x.PostRDMARead(iov, cookie, x.peer.lmr.Remote(0, int(min(total(iov), 1<<31-1))), f)
		}}
)

// joined returns a rule about two connected endpoints.
func joined(f func(t *testing.T, x, y *point)) func(*testing.T, network) {
	return joinedWith(Options{}, nil, f)
}

func joinedWith(o Options, attr *EPAttr, f func(t *testing.T, x, y *point)) func(*testing.T, network) {
	return func(t *testing.T, n network) {
		a, b := newHosts(t, n, o)
		x, y := pair(a, b, attr)
		f(t, x, y)
	}
}

// withLimits returns the code of a rule: it runs f with two connected endpoints. The endpoint x has the attributes attr
// and a shared receive queue: with such a queue, an endpoint gets exactly the sizes that attr requests.
func withLimits(attr *EPAttr, f func(t *testing.T, x, y *point)) func(*testing.T, network) {
	return func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.common(1, 64).point(attr), b.point(nil)
		join(x, y)
		f(t, x, y)
	}
}

// region registers 256 bytes in the endpoint's zone.
func (p *point) region(priv MemPriv) *LMR {
	p.host.t.Helper()
	return must(p.host.ia.CreateLMR(make([]byte, 256), p.host.pz, priv))(p.host.t)
}

// refusals returns the rules for invalid arguments of every post. A refused post changes nothing.
func refusals(p post) []rule {
	source := p.op == DTOSend || p.op == DTORDMAWrite
	attr := DefaultEPAttr()
	attr.MaxMessageSize, attr.MaxRDMASize = 10000, 10000
	refused := func(name string, want error, iov func(x *point) []LMRTriplet) rule {
		return rule{name, joinedWith(Options{}, &attr, func(t *testing.T, x, y *point) {
			wants(t, "post", p.post(x, iov(x), 1, 0), want)
			if _, recv, request, err := x.Status(); !recv || !request || err != nil {
				t.Errorf("something is outstanding: receives idle %v, requests idle %v, %v", recv, request, err)
			}
			proves(x, y)
			x.still()
		})}
	}
	at := func(l *LMR, off, n int) []LMRTriplet { return []LMRTriplet{l.Segment(off, n)} }
	rules := []rule{
		refused("more segments than the endpoint has are refused", ErrInvalidParameter, func(*point) []LMRTriplet { return make([]LMRTriplet, 5) }),
		refused("a segment of no region is refused", ErrPrivilegesViolation, func(x *point) []LMRTriplet {
			return []LMRTriplet{{Context: x.lmr.Context() + 1, Address: x.lmr.Address(), Length: 8}}
		}),
		refused("a segment of a region that was freed is refused", ErrPrivilegesViolation, func(x *point) []LMRTriplet {
			l := x.region(MemAll)
			ok(x.host.t, l.Free())
			return at(l, 0, 8)
		}),
		refused("a segment of another zone is refused", ErrProtectionViolation, func(x *point) []LMRTriplet {
			return at(must(x.host.ia.CreateLMR(make([]byte, 8), must(x.host.ia.CreatePZ())(x.host.t), MemAll))(x.host.t), 0, 8)
		}),
		refused("a segment that ends a byte behind its region is refused", ErrInvalidParameter, func(x *point) []LMRTriplet {
			return at(x.lmr, pointMem-7, 8)
		}),
		refused("a segment that begins a byte before its region is refused", ErrInvalidParameter, func(x *point) []LMRTriplet {
			iov := at(x.lmr, 0, 8)
			iov[0].Address--
			return iov
		}),
		refused("a segment whose end wraps is refused", ErrInvalidParameter, func(x *point) []LMRTriplet {
			return []LMRTriplet{{Context: x.lmr.Context(), Address: math.MaxUint64 - 3, Length: 8}}
		}),
		refused("the last segment is looked at as the first is", ErrInvalidParameter, func(x *point) []LMRTriplet {
			return append(x.seg(0, 8), x.lmr.Segment(pointMem, 1))
		}),
		refused("memory without any privilege is refused", ErrPrivilegesViolation, func(x *point) []LMRTriplet { return at(x.region(MemNone), 0, 8) }),
		refused("memory for peers alone is refused", ErrPrivilegesViolation, func(x *point) []LMRTriplet {
			return at(x.region(MemRemoteRead|MemRemoteWrite), 0, 8)
		}),
		{"flags that the call does not know are refused", joined(func(t *testing.T, x, y *point) {
			for f := CompletionFlags(1); f != 0; f <<= 1 {
				if f&p.flags == 0 {
					wants(t, fmt.Sprintf("flag %#x", uint8(f)), p.post(x, nil, 1, f), ErrInvalidParameter)
				}
			}
			proves(x, y)
			x.still()
		})},
		{"on an endpoint that was freed or is none is refused", joined(func(t *testing.T, x, y *point) {
			none := &point{peer: y}
			wants(t, "none", p.post(none, nil, 1, 0xff), with(ErrInvalidHandle, SubInvalidHandleEP))
			ok(t, x.Free())
			wants(t, "freed", p.post(x, make([]LMRTriplet, 99), 1, 0xff), with(ErrInvalidHandle, SubInvalidHandleEP))
		})},
		{"a segment of no bytes is ignored, whatever else it says", joined(func(t *testing.T, x, y *point) {
			wild := LMRTriplet{Context: 0xffffffff, Address: math.MaxUint64}
			copy(x.mem, "some")
			iov := []LMRTriplet{wild, x.lmr.Segment(0, 4), wild}
			if p.op == DTOReceive {
				ok(t, p.post(x, iov, 1, 0))
				ok(t, y.PostSend(y.seg(0, 4), 2, 0))
				x.done(x.recv, 1, DTOReceive, DTOSuccess, 4)
				return
			}
			ok(t, y.PostRecv(y.seg(0, 4), 2, 0))
			ok(t, p.post(x, iov, 1, 0))
			x.done(x.request, 1, p.op, DTOSuccess, 4)
		})},
		{"the segments are the caller's again when the call returns", joined(func(t *testing.T, x, y *point) {
			ok(t, y.PostRecv(y.seg(0, 64), 9, 0))
			iov := x.seg(64, 32)
			ok(t, p.post(x, iov, 1, 0))
			iov[0] = LMRTriplet{Context: 0xffffffff, Address: 1, Length: 1 << 20}
			if p.op == DTOReceive {
				ok(t, y.PostSend(y.seg(0, 8), 2, 0))
				x.done(x.recv, 1, DTOReceive, DTOSuccess, 8)
			} else {
				x.done(x.request, 1, p.op, DTOSuccess, 32)
			}
		})},
	}
	if p.op != DTOReceive {
		rules = append(rules, requestRules(p, source)...)
	}
	return rules
}

// requestRules returns the rules that sends, writes and reads have in common.
func requestRules(p post, source bool) []rule {
	attr := DefaultEPAttr()
	attr.MaxMessageSize, attr.MaxRDMASize, attr.MaxRequestDTOs = 10000, 10000, 2
	most := EPAttr{MaxRecvDTOs: 4, MaxRequestDTOs: 4, MaxRecvIOV: maxIOV, MaxRequestIOV: maxIOV, MaxRDMAReadIn: 4, MaxRDMAReadOut: 4}
	return []rule{
		{"an endpoint that is not connected takes none", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := a.point(nil)
			x.peer = b.point(nil)
			wants(t, "unconnected", p.post(x, x.seg(0, 8), 1, 0), with(ErrInvalidState, SubInvalidStateEPUnconnected))
			x.dial(b, nil)
			wants(t, "connecting", p.post(x, x.seg(0, 8), 1, 0), with(ErrInvalidState, SubInvalidStateEPActConnPending))
			x.still()
		}},
		{"an endpoint that disconnects gracefully takes no more", joined(func(t *testing.T, x, y *point) {
			ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // the peer has no receive yet
			ok(t, x.Disconnect(CloseGraceful))
			wants(t, "post", p.post(x, x.seg(0, 8), 2, 0), with(ErrInvalidState, SubInvalidStateEPDiscPending))
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			x.done(x.request, 1, DTOSend, DTOSuccess, 8)
			x.expect(EventDisconnected)
			expectNoEvent(t, x.request)
		})},
		{"on an endpoint that is disconnected it succeeds and is flushed", joined(func(t *testing.T, x, y *point) {
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			for i := range uint64(3) {
				ok(t, p.post(x, x.seg(0, 8), i, 0))
				x.done(x.request, i, p.op, DTOFlushed, 0)
			}
			expectNoEvent(t, x.request)
		})},
		{"longer than the endpoint's limit is refused, as long is not", withLimits(&attr, func(t *testing.T, x, y *point) {
			wants(t, "longer", p.post(x, []LMRTriplet{x.lmr.Segment(0, 5000), x.lmr.Segment(0, 5001)}, 1, 0), ErrInvalidParameter)
			ok(t, y.PostRecv(y.seg(0, 10000), 1, 0))
			ok(t, p.post(x, []LMRTriplet{x.lmr.Segment(0, 5000), x.lmr.Segment(5000, 5000)}, 1, 0))
			x.done(x.request, 1, p.op, DTOSuccess, 10000)
		})},
		{"a size that was asked for is a minimum: more is moved", joinedWith(Options{}, &attr, func(t *testing.T, x, y *point) {
			ok(t, y.PostRecv([]LMRTriplet{y.lmr.Segment(0, 6000), y.lmr.Segment(0, 6000)}, 1, 0))
			ok(t, p.post(x, []LMRTriplet{x.lmr.Segment(0, 6000), x.lmr.Segment(0, 6000)}, 1, 0))
			x.done(x.request, 1, p.op, DTOSuccess, 12000)
		})},
		{"no more are outstanding than the endpoint has room for", joinedWith(Options{}, &attr, func(t *testing.T, x, y *point) {
			for i := range uint64(2) {
				ok(t, x.PostSend(x.seg(0, 8), i, 0)) // the peer has no receives
			}
			wants(t, "the third", p.post(x, x.seg(0, 8), 2, 0), with(ErrInsufficientResources, SubResourceMemory))
			for i := range uint64(2) {
				ok(t, y.PostRecv(y.seg(0, 8), i, 0))
				x.done(x.request, i, DTOSend, DTOSuccess, 8)
			}
			ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
			ok(t, p.post(x, x.seg(0, 8), 2, 0))
			x.done(x.request, 2, p.op, DTOSuccess, 8)
		})},
		{"a completion that is suppressed does not appear when the operation succeeds", joined(func(t *testing.T, x, y *point) {
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
			ok(t, p.post(x, x.seg(0, 8), 1, CompletionSuppress))
			ok(t, p.post(x, x.seg(0, 8), 2, 0))
			x.done(x.request, 2, p.op, DTOSuccess, 8)
			expectNoEvent(t, x.request)
		})},
		{"a completion that is suppressed appears when the operation fails", joined(func(t *testing.T, x, y *point) {
			ok(t, x.PostSend(x.seg(0, 8), 1, CompletionSuppress)) // the peer has no receive
			ok(t, p.post(x, x.seg(0, 8), 2, CompletionSuppress|CompletionBarrierFence))
			ok(t, x.Disconnect(CloseAbrupt))
			x.done(x.request, 1, DTOSend, DTOFlushed, 0)
			if ev := await(t, x.request, EventDTOCompletion); ev.Cookie != 2 || ev.Status != DTOFlushed && ev.Status != DTOSuccess {
				t.Errorf("%d ended with %v", ev.Cookie, ev.Status)
			}
		})},
		{"every segment that the limit allows is used, in order", joinedWith(Options{}, &most, func(t *testing.T, x, y *point) {
			fillRandom(x.mem, 1)
			fillRandom(y.mem, 2)
			y.memoryBarrier()
			iov, there := []LMRTriplet{}, []byte{}
			for i := range maxIOV {
				iov = append(iov, x.lmr.Segment(4000-200*i, 2*i))
			}
			for i := range maxIOV {
				there = append(there, x.mem[4000-200*i:][:2*i]...)
			}
			ok(t, y.PostRecv(y.seg(0, len(there)), 1, 0))
			ok(t, p.post(x, iov, 1, 0))
			x.done(x.request, 1, p.op, DTOSuccess, len(there))
			if p.op == DTOSend {
				y.done(y.recv, 1, DTOReceive, DTOSuccess, len(there))
			}
			if !source {
				there = there[:0]
				for i := range maxIOV {
					there = append(there, x.mem[4000-200*i:][:2*i]...)
				}
			}
			same(t, y.mem[:len(there)], there)
		})},
		{"its completion names endpoint, cookie, operation and bytes", joined(func(t *testing.T, x, y *point) {
			for i, cookie := range []uint64{0, 1, 1, math.MaxUint64, 1 << 63} {
				ok(t, y.PostRecv(y.seg(0, 100), 1, 0))
				ok(t, p.post(x, x.seg(0, 10+i), cookie, 0))
				x.done(x.request, cookie, p.op, DTOSuccess, 10+i)
			}
		})},
		{"no bytes are moved as well as any", joined(func(t *testing.T, x, y *point) {
			for _, iov := range [][]LMRTriplet{nil, {}, x.seg(0, 0)} {
				ok(t, y.PostRecv(nil, 1, 0))
				ok(t, p.post(x, iov, 2, 0))
				x.done(x.request, 2, p.op, DTOSuccess, 0)
			}
		})},
	}
}

// silence is a link on top of an adapter's link that can lose packets.
type silence struct {
	link.Link
	on *atomic.Bool
}

// Recv loses the packets that arrive while silence is on.
func (s *silence) Recv(bufs []link.Buf) int {
	n := s.Link.Recv(bufs)
	if n > 0 && s.on.Load() {
		s.Link.Free(bufs[:n])
		return 0
	}
	return n
}

var postRules = []topic{
	{"dat_ep_post_send", epPostSendRules},
	{"dat_ep_post_recv", epPostRecvRules},
	{"dat_ep_post_rdma_write", epPostRDMAWriteRules},
	{"dat_ep_post_rdma_read", epPostRDMAReadRules},
	{"ordering", orderingRules},
	{"flush", flushRules},
	{"errors", errorRules},
	{"misuse", misuseRules},
}
