package xdp

import (
	"bytes"
	"testing"

	"github.com/datxdp/datxdp/link"
)

// A packet of several frames is returned as a whole by one call, and is trimmed to its UDP length.
func TestReceivePieces(t *testing.T) {
	payload := payloadOf(5000)
	packet := packetFor(t, "10.0.0.2", "10.0.0.1", payload)
	padded := append(bytes.Clone(packet), make([]byte, 40)...)
	for _, tc := range []struct {
		name string
		in   [][]byte
		bufs int // expected number of Bufs
	}{
		{"two", pieces(packet, 3840), 2},
		{"headers alone", pieces(packet, headers4, 3000), 3},
		{"padding in the last", pieces(padded, 3840), 2},
		{"padding in a piece of its own", pieces(padded, 3840, len(packet)), 2},
		{"padding in two pieces", pieces(padded, 3000, len(packet)-1, len(packet)+3), 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newFake(t, 9000)
			bufs := make([]link.Buf, maxSegments)
			for i, p := range tc.in {
				if n := k.s.Recv(bufs); n != 0 {
					t.Fatalf("%d Bufs before the packet was complete", n)
				}
				k.piece(t, p, i < len(tc.in)-1)
			}
			n := k.s.Recv(bufs)
			var got []byte
			for i, b := range bufs[:n] {
				got = append(got, b.Data...)
				if more := b.Flags&link.More != 0; more != (i < n-1) {
					t.Errorf("Buf %d of %d: More is %v", i, n, more)
				}
			}
			if !bytes.Equal(got, payload) || n != tc.bufs {
				t.Errorf("%d bytes in %d Bufs, want %d in %d", len(got), n, len(payload), tc.bufs)
			}
			k.s.Free(bufs[:n])
			conserve(t, k.s)
			if k.s.pool.count[isHeld] != 0 {
				t.Errorf("frames %v", k.s.pool.count)
			}
		})
	}
}

// A packet that does not fit behind other packets waits for the next call.
func TestReceiveDoesNotSplit(t *testing.T) {
	k := newFake(t, 9000)
	packet := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(9000-28))
	for range 3 {
		k.deliver(t, pieces(packet, 3840, 7680)...)
	}
	bufs := make([]link.Buf, 20)
	for call, want := range []int{6, 3, 0} {
		if n := k.s.Recv(bufs[:8]); n != want {
			t.Errorf("call %d: %d Bufs, want %d", call, n, want)
		}
	}
}

// Everything except complete UDP packets for one of our addresses is dropped and counted. The frames return to the
// pool.
func TestReceiveDrops(t *testing.T) {
	k := newFake(t, 9000)
	good := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(100))
	long := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(4000))
	var many [][]byte
	for range maxSegments + 3 {
		many = append(many, good)
	}
	bad := [][][]byte{
		{good[:50]}, {packetFor(t, "10.0.0.2", "10.0.0.9", nil)}, {packetFor(t, "fd00::2", "fd00::9", nil)},
		pieces(long[:3000], 1500), pieces(long, 20), many,
	}
	bufs := make([]link.Buf, maxSegments)
	for i, b := range bad {
		for j := range b { // Recv is called after each piece
			k.piece(t, b[j], j < len(b)-1)
			if n := k.s.Recv(bufs); n != 0 {
				t.Fatalf("bad packet %d: %d Bufs", i, n)
			}
		}
		if got := k.s.Stats().RxInvalid; got != uint64(i+1) {
			t.Errorf("bad packet %d: %d counted, want %d", i, got, i+1)
		}
	}
	k.deliver(t, good)
	n := k.s.Recv(bufs)
	if n != 1 || len(bufs[0].Data) != 100 {
		t.Errorf("%d Bufs after the bad ones", n)
	}
	k.s.Free(bufs[:n])
	conserve(t, k.s)
	if k.s.pool.count[isHeld] != 0 {
		t.Errorf("frames %v", k.s.pool.count)
	}
}

// Descriptors with invalid addresses do no harm.
func TestBadDescriptors(t *testing.T) {
	packet := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(5000))
	long := func(k *fakeKernel, at uint32, change func(*desc)) { // a packet of three pieces, one of which is invalid
		k.deliver(t, pieces(packet, 2000, 4000)...)
		d := k.s.rx.slot(at)
		change(&d)
		k.rx.slots[at&uint32(len(k.rx.slots)-1)] = d
	}
	free := func(k *fakeKernel) uint64 { return k.s.umem.addr(k.s.pool.free[0], 0) }
	for name, receive := range map[string]func(k *fakeKernel){
		"outside":               func(k *fakeKernel) { k.raw(desc{addr: 1 << 40, len: 100}) },
		"past its frame":        func(k *fakeKernel) { k.raw(desc{addr: k.fill.slot(0), len: 1 << 20}) },
		"a frame that is free":  func(k *fakeKernel) { k.raw(desc{addr: free(k), len: 100}) },
		"middle outside":        func(k *fakeKernel) { long(k, 1, func(d *desc) { d.addr = 1 << 40 }) },
		"middle past its frame": func(k *fakeKernel) { long(k, 1, func(d *desc) { d.len = 1 << 20 }) },
		"end that is free":      func(k *fakeKernel) { long(k, 2, func(d *desc) { d.addr = free(k) }) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newFake(t, 9000)
			receive(k)
			k.comp.reserve(2)
			k.comp.put(0, 1<<40)
			k.comp.put(1, free(k)) // a frame that was not sent
			k.comp.submit(2)
			bufs := make([]link.Buf, maxSegments)
			if n := k.s.Recv(bufs); n != 0 {
				t.Errorf("%d Bufs", n)
			}
			k.s.Alloc(bufs)
			if k.s.Stats().RxInvalid == 0 {
				t.Error("nothing was counted as invalid")
			}
			conserve(t, k.s)
		})
	}
}
