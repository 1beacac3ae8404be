package dat

import (
	"bytes"
	"testing"
)

var epPostSendRules = append(refusals(postSend), []rule{
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
		expectNoEvent(t, x.request)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		x.done(x.request, 1, DTOSend, DTOSuccess, 8)
	})},
	{"all its flags may be together", joined(func(t *testing.T, x, y *point) {
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 8), 1, CompletionSuppress|CompletionSolicitedWait|CompletionBarrierFence))
		y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
		expectNoEvent(t, x.request)
	})},
	{"an endpoint may send to itself in the same process and adapter", func(t *testing.T, n network) {
		_, b := newHosts(t, n, Options{})
		x, y := pair(b, b, nil)
		proves(x, y)
	}},
}...)

var epPostRecvRules = append(refusals(postRecv), []rule{
	{"it succeeds in every state, and receives posted before the connection are used", func(t *testing.T, n network) {
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
	{"a shorter message leaves the end of the buffer unchanged", joined(func(t *testing.T, x, y *point) {
		fill(y.mem[:64], 0xaa)
		ok(t, y.PostRecv(y.seg(0, 64), 1, 0))
		ok(t, x.PostSend(x.seg(0, 10), 1, 0))
		y.done(y.recv, 1, DTOReceive, DTOSuccess, 10)
		same(t, y.mem[10:64], bytes.Repeat([]byte{0xaa}, 54))
	})},
	{"an endpoint without room for receives takes none", joinedWith(Options{}, &EPAttr{MaxRequestDTOs: 8}, func(t *testing.T, x, y *point) {
		wants(t, "post", x.PostRecv(nil, 1, 0), ErrInsufficientResources)
	})},
	{"two connections with one dispatcher each get their own messages", func(t *testing.T, n network) {
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
}...)

var epPostRDMAWriteRules = append(refusals(postWrite), []rule{
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
		y.memoryBarrier()
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
}...)

var epPostRDMAReadRules = append(refusals(postRead), []rule{
	{"the bytes are here, and the peer gets no event", joined(func(t *testing.T, x, y *point) {
		fillRandom(y.mem[:3000], 1)
		y.memoryBarrier()
		ok(t, x.PostRDMARead(x.seg(1000, 3000), 1, y.lmr.Remote(0, 3000), 0))
		x.done(x.request, 1, DTORDMARead, DTOSuccess, 3000)
		same(t, x.mem[1000:4000], y.mem[:3000])
		y.still()
	})},
	{"local memory beyond the length of the range is unchanged", joined(func(t *testing.T, x, y *point) {
		fill(x.mem[:64], 0xaa)
		fill(y.mem[:64], 0x55)
		y.memoryBarrier()
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
			y.memoryBarrier()
			for i := range 64 {
				ok(t, x.PostRDMARead(x.seg(i*100, 100), uint64(i), y.lmr.Remote(i*100, 100), 0))
			}
			for i := range 64 {
				x.done(x.request, uint64(i), DTORDMARead, DTOSuccess, 100)
			}
			same(t, x.mem[:6400], y.mem[:6400])
		})},
	{"if either endpoint allows no reads, the post returns an error", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, attr := range []EPAttr{{MaxRequestDTOs: 4, MaxRDMAReadIn: 4}, {MaxRequestDTOs: 4, MaxRDMAReadOut: 4}} {
			x, y := pair(a, b, &attr)
			wants(t, "read", x.PostRDMARead(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0), ErrInvalidParameter)
		}
	}},
}...)
