package dat

import (
	"bytes"
	"testing"
)

// TestRemoteAccess: a forbidden RDMA access completes with the expected status, ends its connection at both sides, and
// accesses no memory. Other connections of the adapters continue.
func TestRemoteAccess(t *testing.T) {
	type target struct {
		host *host
		lmr  *LMR
		pz   *PZ
		priv MemPriv
	}
	const size = 64
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, g *target)
		remote func(r *RMRTriplet)
	}{
		{"key wrong", nil, func(r *RMRTriplet) { r.Context ^= 1 << 9 }},
		{"key zero", nil, func(r *RMRTriplet) { r.Context = 0 }},
		{"key revoked", func(t *testing.T, g *target) { ok(t, g.lmr.Free()) }, nil},
		{"one byte before", nil, func(r *RMRTriplet) { r.Address-- }},
		{"one byte beyond", nil, func(r *RMRTriplet) { r.Address++ }},
		{"far away", nil, func(r *RMRTriplet) { r.Address += 1 << 40 }},
		{"end wraps 64 bits", nil, func(r *RMRTriplet) { r.Address = 1<<64 - size }},
		{"inside wraps 64 bits", nil, func(r *RMRTriplet) { r.Address = 1<<64 - size/2 }},
		{"address zero", nil, func(r *RMRTriplet) { r.Address = 0 }},
		{"wrong zone", func(t *testing.T, g *target) { g.pz = must(g.host.ia.CreatePZ())(t) }, nil},
		{"right missing", func(t *testing.T, g *target) { g.priv = 0 }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, n network) {
				a, b := newHosts(t, n, Options{})
				u, v := pair(a, b, nil) // a connection that must not be affected
				for _, op := range []DTO{DTORDMAWrite, DTORDMARead} {
					x, y := pair(a, b, nil)
					mem := bytes.Repeat([]byte{0xaa}, 3*size) // the region is in the middle
					needs, other := MemRemoteWrite, MemRemoteRead
					if op == DTORDMARead {
						needs, other = other, needs
					}
					g := &target{host: b, pz: b.pz, priv: needs}
					if tc.change != nil && tc.name != "key revoked" {
						tc.change(t, g)
					}
					g.lmr = must(b.ia.CreateLMR(mem[size:2*size], g.pz, MemLocalRead|MemLocalWrite|g.priv|other))(t)
					to := g.lmr.Remote(0, size)
					if g.priv == 0 { // only the other privilege, so that there is a context
						to.Context = g.lmr.RMRContext()
					}
					if tc.remote != nil {
						tc.remote(&to)
					}
					if tc.name == "key revoked" {
						tc.change(t, g)
					}
					fill(x.mem[:size], 0x55)
					ok(t, x.PostRecv(x.seg(0, 8), 7, 0))
					ok(t, y.PostRecv(y.seg(0, 8), 8, 0))
					ok(t, x.PostRDMAWrite(x.seg(0, size), 1, y.lmr.Remote(0, size), 0))
					access(t, x, op, 2, to)
					after := x.PostRDMAWrite(x.seg(0, size), 3, y.lmr.Remote(0, size), 0)

					x.done(x.request, 1, DTORDMAWrite, DTOSuccess, size)
					x.done(x.request, 2, op, DTORemoteAccess, 0)
					if after == nil { // otherwise the connection had ended already
						x.done(x.request, 3, DTORDMAWrite, DTOFlushed, 0)
					}
					x.done(x.recv, 7, DTOReceive, DTOFlushed, 0)
					y.done(y.recv, 8, DTOReceive, DTOFlushed, 0)
					x.expect(EventBroken)
					y.expect(EventBroken)
					if x.State() != EPDisconnected || y.State() != EPDisconnected {
						t.Errorf("states %v, %v", x.State(), y.State())
					}
					if !bytes.Equal(mem, bytes.Repeat([]byte{0xaa}, 3*size)) {
						t.Error("memory was touched")
					}
					x.still()
					y.still()
				}
				proves(u, v)
			})
		})
	}
}

func access(t *testing.T, x *point, op DTO, cookie uint64, to RMRTriplet) {
	t.Helper()
	if op == DTORDMARead {
		ok(t, x.PostRDMARead(x.seg(0, int(to.Length)), cookie, to, 0))
	} else {
		ok(t, x.PostRDMAWrite(x.seg(0, int(to.Length)), cookie, to, 0))
	}
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// TestRemoteAccessLongRange: a range of many packets that exceeds its region by one byte ends the connection too. The
// packets before the last one may have placed their data, but memory outside the region is untouched.
func TestRemoteAccessLongRange(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, v := pair(a, b, nil)
		for _, op := range []DTO{DTORDMAWrite, DTORDMARead} {
			x, y := pair(a, b, nil)
			mem := make([]byte, 40001)
			lmr := must(b.ia.CreateLMR(mem[:40000], b.pz, MemAll))(t)
			fill(x.mem, 0x55)
			access(t, x, op, 1, RMRTriplet{lmr.RMRContext(), lmr.Address(), 40001})
			x.done(x.request, 1, op, DTORemoteAccess, 0)
			x.expect(EventBroken)
			y.expect(EventBroken)
			if mem[40000] != 0 {
				t.Error("the byte after the region was touched")
			}
		}
		proves(u, v)
	})
}

func TestMessageLongerThanReceive(t *testing.T) {
	for _, over := range []int{1, 5000} {
		eachLink(t, func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			u, v := pair(a, b, nil)
			x, y := pair(a, b, nil)
			fill(x.mem, 0x55)
			ok(t, y.PostRecv(y.seg(0, 64), 1, 0))
			ok(t, y.PostRecv(y.seg(100, 64), 2, 0))
			ok(t, x.PostSend(x.seg(0, 64+over), 3, 0))
			x.done(x.request, 3, DTOSend, DTORemoteResponder, 0)
			y.done(y.recv, 1, DTOReceive, DTOLocalLength, 0)
			y.done(y.recv, 2, DTOReceive, DTOFlushed, 0)
			x.expect(EventBroken)
			y.expect(EventBroken)
			if y.mem[64] != 0 {
				t.Error("the byte after the receive was touched")
			}
			x.still()
			y.still()
			proves(u, v)
		})
	}
}

// TestMemoryFreedUnderOperation frees an LMR while an operation uses it. After that the memory is not accessed. The
// connection of the operation ends; other connections continue.
func TestMemoryFreedUnderOperation(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, v := pair(a, b, nil)

		x, y := pair(a, b, nil) // under a receive
		ok(t, y.PostRecv(y.seg(0, 64), 1, 0))
		ok(t, y.lmr.Free())
		fill(x.mem, 0x55)
		ok(t, x.PostSend(x.seg(0, 64), 2, 0))
		y.done(y.recv, 1, DTOReceive, DTOLocalProtection, 0)
		if ev := await(t, x.request, EventDTOCompletion); ev.Status == DTOSuccess {
			t.Error("the send succeeded")
		}
		x.expect(EventBroken)
		y.expect(EventBroken)
		if y.mem[0] != 0 {
			t.Error("freed memory was written")
		}

		x, y = pair(a, b, nil) // under a send that waits for its receive
		ok(t, x.PostSend(x.seg(0, 64), 3, 0))
		ok(t, x.lmr.Free())
		ok(t, y.PostRecv(y.seg(0, 64), 4, 0))
		x.done(x.request, 3, DTOSend, DTOLocalProtection, 0)
		y.done(y.recv, 4, DTOReceive, DTOFlushed, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
		proves(u, v)
	})
}
