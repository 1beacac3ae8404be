package dat

import (
	"bytes"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// A post is one of the calls that move data, so that rules which hold for several are said once.
type post struct {
	op    DTO
	flags CompletionFlags // that it may carry
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

// joined is a rule about two connected endpoints.
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

// region registers 256 bytes in the endpoint's zone.
func (p *point) region(priv MemPriv) *LMR {
	p.host.t.Helper()
	return must(p.host.ia.CreateLMR(make([]byte, 256), p.host.pz, priv))(p.host.t)
}

// refusals are what every post refuses, and that nothing has changed after.
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

// requestRules are what sends, writes and reads have in common.
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
			ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // nobody receives it yet
			ok(t, x.Disconnect(CloseGraceful))
			wants(t, "post", p.post(x, x.seg(0, 8), 2, 0), with(ErrInvalidState, SubInvalidStateEPDiscPending))
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			x.done(x.request, 1, DTOSend, DTOSuccess, 8)
			x.expect(EventDisconnected)
			still(t, x.request)
		})},
		{"on an endpoint that is disconnected it succeeds and is flushed", joined(func(t *testing.T, x, y *point) {
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			for i := range uint64(3) {
				ok(t, p.post(x, x.seg(0, 8), i, 0))
				x.done(x.request, i, p.op, DTOFlushed, 0)
			}
			still(t, x.request)
		})},
		{"longer than the endpoint's limit is refused, as long is not", joinedWith(Options{}, &attr, func(t *testing.T, x, y *point) {
			wants(t, "longer", p.post(x, []LMRTriplet{x.lmr.Segment(0, 5000), x.lmr.Segment(0, 5001)}, 1, 0), ErrInvalidParameter)
			ok(t, y.PostRecv(y.seg(0, 10000), 1, 0))
			ok(t, p.post(x, []LMRTriplet{x.lmr.Segment(0, 5000), x.lmr.Segment(5000, 5000)}, 1, 0))
			x.done(x.request, 1, p.op, DTOSuccess, 10000)
		})},
		{"no more are outstanding than the endpoint has room for", joinedWith(Options{}, &attr, func(t *testing.T, x, y *point) {
			for i := range uint64(2) {
				ok(t, x.PostSend(x.seg(0, 8), i, 0)) // nobody receives them
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
			still(t, x.request)
		})},
		{"a completion that is suppressed appears when the operation fails", joined(func(t *testing.T, x, y *point) {
			ok(t, x.PostSend(x.seg(0, 8), 1, CompletionSuppress)) // nobody receives it
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
			y.letGo()
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

// silence is a layer that stands between an adapter and its network.
type silence struct {
	link.Link
	on *atomic.Bool
}

// Recv loses what arrives while silence is on.
func (s *silence) Recv(bufs []link.Buf) int {
	n := s.Link.Recv(bufs)
	if n > 0 && s.on.Load() {
		s.Link.Free(bufs[:n])
		return 0
	}
	return n
}

var postRules = []topic{
	{"dat_ep_post_send", append(refusals(postSend), []rule{
		{"a message fills the receive, one piece after the other", joined(func(t *testing.T, x, y *point) {
			fillRandom(x.mem[:100], 1)
			ok(t, y.PostRecv([]LMRTriplet{y.lmr.Segment(500, 10), y.lmr.Segment(0, 60), y.lmr.Segment(300, 60)}, 1, 0))
			ok(t, x.PostSend(x.seg(0, 100), 2, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 100)
			same(t, bytes.Join([][]byte{y.mem[500:510], y.mem[:60], y.mem[300:330]}, nil), x.mem[:100])
		})},
		{"an empty message consumes a receive", joined(func(t *testing.T, x, y *point) {
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
			ok(t, x.PostSend(nil, 1, 0))
			ok(t, x.PostSend(x.seg(0, 8), 2, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 0)
			y.done(y.recv, 2, DTOReceive, DTOSuccess, 8)
		})},
		{"memory with any local privilege may be sent", joined(func(t *testing.T, x, y *point) {
			for _, priv := range []MemPriv{MemLocalRead, MemLocalWrite, MemLocalWrite | MemRemoteRead} {
				ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
				ok(t, x.PostSend([]LMRTriplet{x.region(priv).Segment(0, 8)}, 2, 0))
				x.done(x.request, 2, DTOSend, DTOSuccess, 8)
				y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
			}
		})},
		{"it does not complete before the peer has a receive", joined(func(t *testing.T, x, y *point) {
			ok(t, x.PostSend(x.seg(0, 8), 1, 0))
			still(t, x.request)
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			x.done(x.request, 1, DTOSend, DTOSuccess, 8)
		})},
		{"all its flags may be together", joined(func(t *testing.T, x, y *point) {
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, x.PostSend(x.seg(0, 8), 1, CompletionSuppress|CompletionSolicitedWait|CompletionBarrierFence))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
			still(t, x.request)
		})},
		{"an endpoint may send to itself in the same process and adapter", func(t *testing.T, n network) {
			_, b := newHosts(t, n, Options{})
			x, y := pair(b, b, nil)
			proves(x, y)
		}},
	}...)},
	{"dat_ep_post_recv", append(refusals(postRecv), []rule{
		{"in every state it succeeds, and what is posted before the connection serves it", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			ok(t, x.PostRecv(x.seg(0, 8), 1, 0)) // unconnected
			x.dial(b, nil)
			ok(t, x.PostRecv(x.seg(0, 8), 2, 0)) // connecting
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, b.request(t).Accept(y.EP, nil))
			ok(t, y.PostRecv(y.seg(0, 8), 2, 0)) // accepting, or connected
			x.expect(EventEstablished)
			y.expect(EventEstablished)
			for i := uint64(1); i <= 2; i++ {
				ok(t, x.PostSend(x.seg(0, 8), i, 0))
				ok(t, y.PostSend(y.seg(0, 8), i, 0))
				x.done(x.recv, i, DTOReceive, DTOSuccess, 8)
				y.done(y.recv, i, DTOReceive, DTOSuccess, 8)
			}
		}},
		{"on an endpoint that is disconnected it succeeds and is flushed", joined(func(t *testing.T, x, y *point) {
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			for i := range uint64(3) {
				ok(t, x.PostRecv(x.seg(0, 8), i, 0))
				x.done(x.recv, i, DTOReceive, DTOFlushed, 0)
			}
		})},
		{"memory for reading alone is refused", joined(func(t *testing.T, x, y *point) {
			for _, priv := range []MemPriv{MemLocalRead, MemLocalRead | MemRemoteWrite} {
				wants(t, "post", x.PostRecv([]LMRTriplet{x.region(priv).Segment(0, 8)}, 1, 0), ErrPrivilegesViolation)
			}
			ok(t, x.PostRecv([]LMRTriplet{x.region(MemLocalWrite).Segment(0, 8)}, 1, 0))
		})},
		{"no more are outstanding than the endpoint has room for", joinedWith(Options{}, &EPAttr{MaxRecvDTOs: 3, MaxRequestDTOs: 8},
			func(t *testing.T, x, y *point) {
				for i := range uint64(3) {
					ok(t, x.PostRecv(x.seg(0, 8), i, 0))
				}
				wants(t, "the fourth", x.PostRecv(x.seg(0, 8), 3, 0), with(ErrInsufficientResources, SubResourceMemory))
				ok(t, y.PostSend(y.seg(0, 8), 1, 0))
				x.done(x.recv, 0, DTOReceive, DTOSuccess, 8)
				ok(t, x.PostRecv(x.seg(0, 8), 3, 0))
			})},
		{"a shorter message leaves the rest of the buffer alone", joined(func(t *testing.T, x, y *point) {
			fill(y.mem[:64], 0xaa)
			ok(t, y.PostRecv(y.seg(0, 64), 1, 0))
			ok(t, x.PostSend(x.seg(0, 10), 1, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 10)
			same(t, y.mem[10:64], bytes.Repeat([]byte{0xaa}, 54))
		})},
		{"an endpoint without room for receives takes none", joinedWith(Options{}, &EPAttr{MaxRequestDTOs: 8}, func(t *testing.T, x, y *point) {
			wants(t, "post", x.PostRecv(nil, 1, 0), ErrInsufficientResources)
		})},
		{"of two connections of one dispatcher each gets its own messages", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x1, y1 := pair(a, b, nil)
			x2, y2 := pair(a, b, nil)
			for i, p := range []*point{y1, y2} {
				ok(t, p.PostRecv(p.seg(0, 8), uint64(i), 0))
			}
			for i, p := range []*point{x1, x2} {
				p.mem[0] = byte(i + 1)
				ok(t, p.PostSend(p.seg(0, 8), 1, 0))
			}
			for i, p := range []*point{y1, y2} {
				p.done(p.recv, uint64(i), DTOReceive, DTOSuccess, 8)
				if p.mem[0] != byte(i+1) {
					t.Errorf("endpoint %d got the message of %d", i+1, p.mem[0])
				}
			}
		}},
	}...)},
	{"dat_ep_post_rdma_write", append(refusals(postWrite), []rule{
		{"the bytes are at the peer, which gets no event", joined(func(t *testing.T, x, y *point) {
			fillRandom(x.mem[:3000], 1)
			ok(t, x.PostRDMAWrite(x.seg(0, 3000), 1, y.lmr.Remote(1000, 3000), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 3000)
			same(t, y.mem[1000:4000], x.mem[:3000])
			y.still()
		})},
		{"it consumes no receive of the peer", joined(func(t *testing.T, x, y *point) {
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, y.lmr.Remote(64, 8), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 8)
			if _, idle, _, _ := y.Status(); idle {
				t.Error("the receive is gone")
			}
		})},
		{"a range that is longer is written as far as the segments go", joined(func(t *testing.T, x, y *point) {
			fill(x.mem[:64], 0x55)
			fill(y.mem[:64], 0xaa)
			y.letGo()
			ok(t, x.PostRDMAWrite(x.seg(0, 10), 1, y.lmr.Remote(0, 64), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 10)
			same(t, y.mem[:64], append(bytes.Repeat([]byte{0x55}, 10), bytes.Repeat([]byte{0xaa}, 54)...))
		})},
		{"a range that is shorter than the segments is a length error", joined(func(t *testing.T, x, y *point) {
			wants(t, "one byte", x.PostRDMAWrite(x.seg(0, 65), 1, y.lmr.Remote(0, 64), 0), ErrLengthError)
			wants(t, "all", x.PostRDMAWrite(x.seg(0, 1), 1, y.lmr.Remote(0, 0), 0), ErrLengthError)
			wants(t, "sum", x.PostRDMAWrite([]LMRTriplet{x.lmr.Segment(0, 64), x.lmr.Segment(0, 1)}, 1, y.lmr.Remote(0, 64), 0), ErrLengthError)
			proves(x, y)
		})},
		{"memory with any local privilege may be written from", joined(func(t *testing.T, x, y *point) {
			for _, priv := range []MemPriv{MemLocalRead, MemLocalWrite} {
				ok(t, x.PostRDMAWrite([]LMRTriplet{x.region(priv).Segment(0, 8)}, 2, y.lmr.Remote(0, 8), 0))
				x.done(x.request, 2, DTORDMAWrite, DTOSuccess, 8)
			}
		})},
		{"the peer's memory needs the right of remote write alone", joined(func(t *testing.T, x, y *point) {
			to := y.region(MemRemoteWrite)
			ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, to.Remote(0, 8), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 8)
		})},
		{"no bytes are written to any context", joined(func(t *testing.T, x, y *point) {
			ok(t, x.PostRDMAWrite(nil, 1, y.lmr.Remote(pointMem, 0), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 0)
			proves(x, y)
		})},
	}...)},
	{"dat_ep_post_rdma_read", append(refusals(postRead), []rule{
		{"the bytes are here, and the peer gets no event", joined(func(t *testing.T, x, y *point) {
			fillRandom(y.mem[:3000], 1)
			y.letGo()
			ok(t, x.PostRDMARead(x.seg(1000, 3000), 1, y.lmr.Remote(0, 3000), 0))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, 3000)
			same(t, x.mem[1000:4000], y.mem[:3000])
			y.still()
		})},
		{"room that the range does not fill is left alone", joined(func(t *testing.T, x, y *point) {
			fill(x.mem[:64], 0xaa)
			fill(y.mem[:64], 0x55)
			y.letGo()
			ok(t, x.PostRDMARead([]LMRTriplet{x.lmr.Segment(0, 5), x.lmr.Segment(5, 59)}, 1, y.lmr.Remote(0, 10), 0))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, 10)
			same(t, x.mem[:64], append(bytes.Repeat([]byte{0x55}, 10), bytes.Repeat([]byte{0xaa}, 54)...))
		})},
		{"a range that is longer than the segments is a length error", joined(func(t *testing.T, x, y *point) {
			wants(t, "one byte", x.PostRDMARead(x.seg(0, 64), 1, y.lmr.Remote(0, 65), 0), ErrLengthError)
			wants(t, "no room", x.PostRDMARead(nil, 1, y.lmr.Remote(0, 1), 0), ErrLengthError)
			wants(t, "more than 32 bits", x.PostRDMARead(x.seg(0, 64), 1, RMRTriplet{1, 1, 1 << 32}, 0), ErrLengthError)
			proves(x, y)
		})},
		{"memory for reading alone is no sink", joined(func(t *testing.T, x, y *point) {
			wants(t, "read", x.PostRDMARead([]LMRTriplet{x.region(MemLocalRead).Segment(0, 8)}, 1, y.lmr.Remote(0, 8), 0), ErrPrivilegesViolation)
			ok(t, x.PostRDMARead([]LMRTriplet{x.region(MemLocalWrite).Segment(0, 8)}, 1, y.lmr.Remote(0, 8), 0))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, 8)
		})},
		{"the peer's memory needs the right of remote read alone", joined(func(t *testing.T, x, y *point) {
			ok(t, x.PostRDMARead(x.seg(0, 8), 1, y.region(MemRemoteRead).Remote(0, 8), 0))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, 8)
		})},
		{"more than may be outstanding wait their turn", joinedWith(Options{},
			&EPAttr{MaxRecvDTOs: 1, MaxRequestDTOs: 64, MaxRDMAReadIn: 1, MaxRDMAReadOut: 2}, func(t *testing.T, x, y *point) {
				fillRandom(y.mem[:6400], 1)
				y.letGo()
				for i := range 64 {
					ok(t, x.PostRDMARead(x.seg(i*100, 100), uint64(i), y.lmr.Remote(i*100, 100), 0))
				}
				for i := range 64 {
					x.done(x.request, uint64(i), DTORDMARead, DTOSuccess, 100)
				}
				same(t, x.mem[:6400], y.mem[:6400])
			})},
		{"an endpoint that allows none, here or there, is told at once", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			for _, attr := range []EPAttr{{MaxRequestDTOs: 4, MaxRDMAReadIn: 4}, {MaxRequestDTOs: 4, MaxRDMAReadOut: 4}} {
				x, y := pair(a, b, &attr)
				wants(t, "read", x.PostRDMARead(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0), ErrInvalidParameter)
			}
		}},
	}...)},
	{"ordering", orderingRules},
	{"flush", flushRules},
	{"errors", errorRules},
	{"misuse", misuseRules},
}

var orderingRules = []rule{
	{"the k-th message fills the k-th receive", joined(func(t *testing.T, x, y *point) {
		const messages = 200
		for i := range messages {
			ok(t, y.PostRecv(y.seg(i*64, 64), uint64(i), 0))
		}
		for i := range messages {
			x.mem[i] = byte(i)
			ok(t, x.PostSend(x.seg(i, 1+i%2), uint64(i), 0))
		}
		for i := range messages {
			y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 1+i%2)
			if y.mem[i*64] != byte(i) {
				t.Fatalf("receive %d has message %d", i, y.mem[i*64])
			}
		}
	})},
	{"requests of all kinds complete in the order of their posts", joined(func(t *testing.T, x, y *point) {
		posts := []post{postRead, postWrite, postSend, postWrite, postRead, postRead, postSend}
		for i := range 10 * len(posts) {
			ok(t, y.PostRecv(y.seg(0, 3000), 1, 0))
			ok(t, posts[i%len(posts)].post(x, x.seg(0, 1+i*29%3000), uint64(i), 0))
		}
		for i := range 10 * len(posts) {
			x.done(x.request, uint64(i), posts[i%len(posts)].op, DTOSuccess, 1+i*29%3000)
		}
	})},
	{"a completion tells that all requests before it succeeded, those without one too", joined(func(t *testing.T, x, y *point) {
		fillRandom(x.mem[:40000], 1)
		ok(t, x.PostRDMAWrite(x.seg(0, 40000), 1, y.lmr.Remote(0, 40000), CompletionSuppress))
		ok(t, x.PostRDMARead(x.seg(50000, 1), 2, y.lmr.Remote(0, 1), 0))
		x.done(x.request, 2, DTORDMARead, DTOSuccess, 1)
		same(t, y.mem[:40000], x.mem[:40000])
	})},
	{"who has the completion of a receive sees the writes that were posted before its message", joined(func(t *testing.T, x, y *point) {
		for i := range 20 {
			fillRandom(x.mem[:20000], uint64(i))
			y.letGo()
			ok(t, y.PostRecv(y.seg(60000, 8), 1, 0))
			ok(t, x.PostRDMAWrite(x.seg(0, 20000), 1, y.lmr.Remote(0, 20000), CompletionSuppress))
			ok(t, x.PostSend(x.seg(60000, 8), 2, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
			same(t, y.mem[:20000], x.mem[:20000])
			x.done(x.request, 2, DTOSend, DTOSuccess, 8)
		}
	})},
	{"a read sees the writes that were posted before it", joined(func(t *testing.T, x, y *point) {
		for i := range 20 {
			fillRandom(x.mem[:5000], uint64(i))
			ok(t, x.PostRDMAWrite(x.seg(0, 5000), 1, y.lmr.Remote(0, 5000), 0))
			ok(t, x.PostRDMARead(x.seg(10000, 5000), 2, y.lmr.Remote(0, 5000), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 5000)
			x.done(x.request, 2, DTORDMARead, DTOSuccess, 5000)
			same(t, x.mem[10000:15000], x.mem[:5000])
		}
	})},
	{"of two writes to one place the later stays", joined(func(t *testing.T, x, y *point) {
		for i := range 50 {
			fill(x.mem[:4000], byte(i))
			fill(x.mem[4000:8000], byte(i+1))
			y.letGo()
			ok(t, x.PostRDMAWrite(x.seg(0, 4000), 1, y.lmr.Remote(0, 4000), CompletionSuppress))
			ok(t, x.PostRDMAWrite(x.seg(4000, 4000), 2, y.lmr.Remote(0, 4000), 0))
			x.done(x.request, 2, DTORDMAWrite, DTOSuccess, 4000)
			same(t, y.mem[:4000], x.mem[4000:8000])
		}
	})},
	{"behind a fence a send has what the read before it fetched", fenced(postSend)},
	{"behind a fence a write has what the read before it fetched", fenced(postWrite)},
	{"completions come before the disconnect on one dispatcher", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		all := must(b.ia.CreateEVD(64, nil, EVDDTO|EVDConnection))(t)
		ok(t, y.Free())
		y.recv, y.request, y.connect = all, all, all
		y.EP = must(b.ia.CreateEP(b.pz, all, all, all, nil))(t)
		join(x, y)
		for i := range uint64(4) {
			ok(t, y.PostRecv(y.seg(0, 8), i, 0))
		}
		ok(t, x.PostSend(x.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		ok(t, x.Disconnect(CloseGraceful))
		y.done(all, 0, DTOReceive, DTOSuccess, 8)
		y.done(all, 1, DTOReceive, DTOSuccess, 8)
		y.done(all, 2, DTOReceive, DTOFlushed, 0)
		y.done(all, 3, DTOReceive, DTOFlushed, 0)
		y.expect(EventDisconnected)
	}},
	{"the connection is established before it ends", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		x.dial(b, nil)
		ok(t, b.request(t).Accept(y.EP, nil))
		x.expect(EventEstablished)
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		y.expect(EventEstablished)
		y.expect(EventDisconnected)
	}},
}

// fenced proves that a request with a fence waits for the read before it, whose data it carries on.
func fenced(p post) func(*testing.T, network) {
	return joined(func(t *testing.T, x, y *point) {
		for i := range 10 {
			fillRandom(y.mem[40000:60000], uint64(i))
			y.letGo()
			ok(t, y.PostRecv(y.seg(0, 20000), 9, 0))
			ok(t, x.PostRDMARead(x.seg(0, 20000), 1, y.lmr.Remote(40000, 20000), 0))
			ok(t, p.post(x, x.seg(0, 20000), 2, CompletionBarrierFence))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, 20000)
			x.done(x.request, 2, p.op, DTOSuccess, 20000)
			if p.op == DTOSend {
				y.done(y.recv, 9, DTOReceive, DTOSuccess, 20000)
			}
			same(t, y.mem[:20000], y.mem[40000:60000])
		}
	})
}

var flushRules = []rule{
	{"receives of both ends are flushed in order by a disconnect", joined(func(t *testing.T, x, y *point) {
		for i := range uint64(5) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 10+i, 0))
		}
		ok(t, x.Disconnect(CloseAbrupt))
		for i := range uint64(5) {
			x.done(x.recv, i, DTOReceive, DTOFlushed, 0)
			y.done(y.recv, 10+i, DTOReceive, DTOFlushed, 0)
		}
	})},
	{"requests are flushed in order by an abrupt disconnect", joined(func(t *testing.T, x, y *point) {
		ops := []post{postSend, postWrite, postRead, postSend}
		for i, p := range ops {
			ok(t, p.post(x, x.seg(0, 8), uint64(i), CompletionBarrierFence))
		}
		ok(t, x.Disconnect(CloseAbrupt))
		failed := false
		for i, p := range ops {
			ev := await(t, x.request, EventDTOCompletion)
			if ev.Cookie != uint64(i) || ev.Op != p.op {
				t.Fatalf("completion %d is %d, %d", i, ev.Cookie, ev.Op)
			}
			if failed && ev.Status != DTOFlushed || ev.Status != DTOFlushed && ev.Status != DTOSuccess {
				t.Errorf("%d ended with %v", i, ev.Status)
			}
			failed = failed || ev.Status != DTOSuccess
		}
		if !failed {
			t.Error("a send that nobody received succeeded")
		}
	})},
	{"a graceful disconnect lets the requests finish and flushes the receives", joined(func(t *testing.T, x, y *point) {
		for i := range uint64(3) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
			ok(t, x.PostSend(x.seg(0, 8), i, 0))
		}
		ok(t, x.Disconnect(CloseGraceful))
		for i := range uint64(4) {
			ok(t, y.PostRecv(y.seg(0, 8), i, 0))
		}
		for i := range uint64(3) {
			x.done(x.request, i, DTOSend, DTOSuccess, 8)
			y.done(y.recv, i, DTOReceive, DTOSuccess, 8)
			x.done(x.recv, i, DTOReceive, DTOFlushed, 0)
		}
		y.done(y.recv, 3, DTOReceive, DTOFlushed, 0)
		x.expect(EventDisconnected)
		y.expect(EventDisconnected)
	})},
	{"what is flushed can be taken when the end of the connection can", joined(func(t *testing.T, x, y *point) {
		for i := range uint64(3) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
			ok(t, y.PostRecv(y.seg(0, 8), i, 0))
		}
		ok(t, x.Disconnect(CloseAbrupt))
		for _, p := range []*point{x, y} {
			p.expect(EventDisconnected)
			if n := p.recv.Len(); n != 3 {
				t.Errorf("%d of 3 completions are there", n)
			}
		}
	})},
	{"a post on what is disconnected is a mark: what comes out before it was before", joined(func(t *testing.T, x, y *point) {
		for i := range uint64(5) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
			ok(t, x.PostSend(x.seg(0, 8), i, CompletionSuppress))
		}
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		ok(t, x.PostRecv(nil, 99, 0))
		ok(t, x.PostSend(nil, 99, 0))
		for _, i := range []uint64{0, 1, 2, 3, 4, 99} {
			x.done(x.recv, i, DTOReceive, DTOFlushed, 0)
			x.done(x.request, i, DTOSend, DTOFlushed, 0)
		}
		x.still()
	})},
	{"a set-up that fails flushes the receives", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for what, fails := range map[string]func(x *point) EventNumber{
			"rejected": func(x *point) EventNumber {
				x.dial(b, nil)
				ok(t, b.request(t).Reject(nil))
				return EventPeerRejected
			},
			"nobody listens": func(x *point) EventNumber {
				ok(t, x.Connect(b.addr, 9999, patience, nil))
				return EventNonPeerRejected
			},
			"nobody answers": func(x *point) EventNumber {
				ok(t, x.Connect(n.absent(), testQual, 20*time.Millisecond, nil))
				return EventTimedOut
			},
			"given up": func(x *point) EventNumber {
				ok(t, x.Connect(n.absent(), testQual, patience, nil))
				ok(t, x.Disconnect(CloseAbrupt))
				return EventDisconnected
			},
		} {
			x := a.point(nil)
			ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
			ok(t, x.PostRecv(x.seg(0, 8), 2, 0))
			var ev Event
			want := fails(x)
			if _, err := x.connect.Wait(patience, 1, &ev); err != nil || ev.Number != want &&
				(want != EventTimedOut && want != EventNonPeerRejected || ev.Number != EventUnreachable) {
				t.Fatalf("%s: %v, %v, want %v", what, ev.Number, err, want)
			}
			x.done(x.recv, 1, DTOReceive, DTOFlushed, 0)
			x.done(x.recv, 2, DTOReceive, DTOFlushed, 0)
		}
	}},
	{"a reset leaves completions that were not taken", joined(func(t *testing.T, x, y *point) {
		ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		ok(t, x.Reset())
		x.done(x.recv, 1, DTOReceive, DTOFlushed, 0)
		x.done(x.request, 2, DTOSend, DTOFlushed, 0)
	})},
	{"a reset of what is not connected leaves the receives", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
		ok(t, x.Reset())
		x.still()
		join(x, y)
		ok(t, y.PostSend(y.seg(0, 8), 2, 0))
		x.done(x.recv, 1, DTOReceive, DTOSuccess, 8)
	}},
	{"no completion appears after the endpoint was freed", joined(func(t *testing.T, x, y *point) {
		for i := range uint64(3) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
			ok(t, x.PostSend(x.seg(0, 8), i, 0))
		}
		ok(t, x.Free())
		n := x.recv.Len() + x.request.Len()
		y.expect(EventDisconnected)
		still(t, x.connect)
		if x.recv.Len()+x.request.Len() != n {
			t.Error("completions appeared")
		}
	})},
	{"an endpoint with receives posted can be freed, and then all that it used", joined(func(t *testing.T, x, y *point) {
		pz := must(x.host.ia.CreatePZ())(t)
		l := must(x.host.ia.CreateLMR(make([]byte, 8), pz, MemAll))(t)
		evd := must(x.host.ia.CreateEVD(8, nil, EVDDTO))(t)
		ep := must(x.host.ia.CreateEP(pz, evd, nil, nil, nil))(t)
		ok(t, ep.PostRecv([]LMRTriplet{l.Segment(0, 8)}, 1, 0))
		ok(t, l.Free())
		ok(t, ep.Free())
		ok(t, evd.Free())
		ok(t, pz.Free())
	})},
}

var errorRules = []rule{
	{"a message longer than its receive ends the connection at both sides", joined(func(t *testing.T, x, y *point) {
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 9), 2, 0))
		x.done(x.request, 2, DTOSend, DTORemoteResponder, 0)
		y.done(y.recv, 1, DTOReceive, DTOLocalLength, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
	})},
	{"a message longer than its receive touches nothing behind it", joined(func(t *testing.T, x, y *point) {
		fill(x.mem[:6000], 0x55)
		ok(t, y.PostRecv([]LMRTriplet{y.lmr.Segment(0, 8), y.lmr.Segment(100, 8)}, 1, 0))
		ok(t, x.PostSend(x.seg(0, 6000), 2, 0))
		y.done(y.recv, 1, DTOReceive, DTOLocalLength, 0)
		if !bytes.Equal(y.mem[8:100], make([]byte, 92)) || !bytes.Equal(y.mem[108:], make([]byte, pointMem-108)) {
			t.Error("memory behind the receive was touched")
		}
	})},
	{"a message that finds no receive waits, and in the end breaks the connection", joinedWith(
		Options{Limits: wire.Limits{NotReady: 30 * time.Millisecond}}, nil, func(t *testing.T, x, y *point) {
			ok(t, x.PostSend(x.seg(0, 8), 1, 0))
			x.done(x.request, 1, DTOSend, DTOReceiverNotReady, 0)
			x.expect(EventBroken)
			var ev Event
			if _, err := y.connect.Wait(patience, 1, &ev); err != nil || ev.Number != EventBroken && ev.Number != EventDisconnected {
				t.Errorf("the peer saw %v, %v", ev.Number, err)
			}
		})},
	{"an empty message for which nobody receives breaks the connection too", joinedWith(
		Options{Limits: wire.Limits{NotReady: 30 * time.Millisecond}}, nil, func(t *testing.T, x, _ *point) {
			ok(t, x.PostSend(nil, 1, 0))
			x.done(x.request, 1, DTOSend, DTOReceiverNotReady, 0)
			x.expect(EventBroken)
		})},
	{"a write with a wrong context ends the connection at both sides", denied(postWrite, func(_ *point, r *RMRTriplet) { r.Context ^= 1 << 9 })},
	{"a read with a wrong context ends the connection at both sides", denied(postRead, func(_ *point, r *RMRTriplet) { r.Context ^= 1 << 9 })},
	{"a write out of the range ends the connection at both sides", denied(postWrite, func(_ *point, r *RMRTriplet) { r.Address += pointMem - 7 })},
	{"a read out of the range ends the connection at both sides", denied(postRead, func(_ *point, r *RMRTriplet) { r.Address -= 1 })},
	{"a write without the right ends the connection at both sides", denied(postWrite, func(y *point, r *RMRTriplet) {
		*r = y.region(MemAll&^MemRemoteWrite).Remote(0, 8)
	})},
	{"a read without the right ends the connection at both sides", denied(postRead, func(y *point, r *RMRTriplet) {
		*r = y.region(MemAll&^MemRemoteRead).Remote(0, 8)
	})},
	{"a write to another zone ends the connection at both sides", denied(postWrite, foreignZone)},
	{"a read of another zone ends the connection at both sides", denied(postRead, foreignZone)},
	{"a write to memory that was freed ends the connection at both sides", denied(postWrite, freedMemory)},
	{"a read of memory that was freed ends the connection at both sides", denied(postRead, freedMemory)},
	{"a local context is none for peers", denied(postWrite, func(y *point, r *RMRTriplet) { r.Context = y.lmr.Context() })},
	{"a peer that falls silent breaks the connection", func(t *testing.T, n network) {
		silent := new(atomic.Bool)
		a, b := newHosts(t, n, Options{Limits: wire.Limits{GiveUp: 100 * time.Millisecond, KeepAlive: 100 * time.Millisecond},
			Wrap: func(l link.Link) link.Link { return &silence{l, silent} }})
		x, y := pair(a, b, nil)
		ok(t, x.PostRecv(x.seg(0, 8), 7, 0))
		silent.Store(true)
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0))
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 2, y.lmr.Remote(0, 8), 0))
		x.done(x.request, 1, DTORDMAWrite, DTOTransport, 0)
		x.done(x.request, 2, DTORDMAWrite, DTOFlushed, 0)
		x.done(x.recv, 7, DTOReceive, DTOFlushed, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
	}},
	{"memory that is freed under a receive breaks the connection of the message", joined(func(t *testing.T, x, y *point) {
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, y.lmr.Free())
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		y.done(y.recv, 1, DTOReceive, DTOLocalProtection, 0)
		if ev := await(t, x.request, EventDTOCompletion); ev.Status == DTOSuccess {
			t.Error("the send succeeded")
		}
		x.expect(EventBroken)
		y.expect(EventBroken)
	})},
	{"memory that is freed under a send breaks the connection", joined(func(t *testing.T, x, y *point) {
		ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // waits for a receive
		ok(t, x.lmr.Free())
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		x.done(x.request, 1, DTOSend, DTOLocalProtection, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
	})},
	{"behind the first operation that fails all are flushed, in both directions", joined(func(t *testing.T, x, y *point) {
		ok(t, x.PostRecv(x.seg(0, 8), 7, 0))
		ok(t, y.PostRecv(y.seg(0, 8), 8, 0))
		ok(t, x.PostRDMARead(x.seg(0, 8), 1, RMRTriplet{Context: 1, Address: 1, Length: 8}, 0))
		for i := range uint64(3) {
			if x.PostRDMAWrite(x.seg(0, 8), 2+i, y.lmr.Remote(0, 8), CompletionBarrierFence) != nil {
				t.Fatal("a post on a broken connection is refused")
			}
		}
		x.done(x.request, 1, DTORDMARead, DTORemoteAccess, 0)
		for i := range uint64(3) {
			x.done(x.request, 2+i, DTORDMAWrite, DTOFlushed, 0)
		}
		x.done(x.recv, 7, DTOReceive, DTOFlushed, 0)
		y.done(y.recv, 8, DTOReceive, DTOFlushed, 0)
	})},
	{"what was posted before the operation that fails succeeds", joined(func(t *testing.T, x, y *point) {
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0))
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 2, RMRTriplet{Context: 1, Address: 1, Length: 8}, 0))
		x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 8)
		x.done(x.request, 2, DTORDMAWrite, DTORemoteAccess, 0)
	})},
	{"a fault of one connection is none of the others", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, v := pair(a, b, nil)
		x, y := pair(a, b, nil)
		access(t, x, DTORDMAWrite, 1, RMRTriplet{Context: 1, Address: 1, Length: 8})
		x.expect(EventBroken)
		y.expect(EventBroken)
		proves(u, v)
		for _, p := range []*point{x, y} {
			p.request, p.recv = must(p.host.ia.CreateEVD(64, nil, EVDDTO))(t), must(p.host.ia.CreateEVD(64, nil, EVDDTO))(t)
			p.EP = must(p.host.ia.CreateEP(p.host.pz, p.recv, p.request, p.connect, nil))(t)
		}
		join(x, y)
		proves(x, y)
	}},
	{"the end of a connection is told once", joined(func(t *testing.T, x, y *point) {
		access(t, x, DTORDMARead, 1, RMRTriplet{Context: 1, Address: 1, Length: 8})
		x.done(x.request, 1, DTORDMARead, DTORemoteAccess, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
		ok(t, x.Disconnect(CloseAbrupt))
		ok(t, y.Disconnect(CloseGraceful))
		x.still()
		y.still()
	})},
	{"an endpoint whose connection broke connects again after a reset", joined(func(t *testing.T, x, y *point) {
		access(t, x, DTORDMAWrite, 1, RMRTriplet{Context: 1, Address: 1, Length: 8})
		x.done(x.request, 1, DTORDMAWrite, DTORemoteAccess, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
		ok(t, x.Reset())
		ok(t, y.Reset())
		join(x, y)
		proves(x, y)
	})},
}

// denied proves that an RDMA to where change points is refused there, and is the end of the connection
// at both sides.
func denied(p post, change func(y *point, r *RMRTriplet)) func(*testing.T, network) {
	return joined(func(t *testing.T, x, y *point) {
		to := y.lmr.Remote(0, 8)
		change(y, &to)
		fill(x.mem[:8], 0x55)
		access(t, x, p.op, 1, to)
		x.done(x.request, 1, p.op, DTORemoteAccess, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
		if !bytes.Equal(y.mem, make([]byte, pointMem)) {
			t.Error("memory of the peer was touched")
		}
		if p.op == DTORDMARead && !bytes.Equal(x.mem[:8], bytes.Repeat([]byte{0x55}, 8)) {
			t.Error("memory was touched")
		}
		y.still()
	})
}

func foreignZone(y *point, r *RMRTriplet) {
	t := y.host.t
	*r = must(y.host.ia.CreateLMR(y.mem, must(y.host.ia.CreatePZ())(t), MemAll))(t).Remote(0, 8)
}

func freedMemory(y *point, r *RMRTriplet) {
	l := y.region(MemAll)
	*r = l.Remote(0, 8)
	ok(y.host.t, l.Free())
}
