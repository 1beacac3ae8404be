//go:build !race

package dat

import (
	"testing"
)

// TestNoAllocations: the data path does not allocate.
func TestNoAllocations(t *testing.T) {
	d := newDuet(t, 1024)
	x, y := d.x, d.y
	small, big, room := x.seg(0, 64), x.seg(0, 100_000), y.seg(0, 100_000)
	split := []LMRTriplet{x.lmr.Segment(0, 1000), x.lmr.Segment(5000, 1), x.lmr.Segment(7000, 3000)}
	to := y.lmr.Remote(0, 100_000)
	few := y.lmr.Remote(0, 64)
	word := must(y.host.ia.CreateLMR(make([]byte, 8), y.host.pz, MemAll|MemRemoteAtomic))(t)
	part := y.seg(0, 64)
	rmr, theirs := must(x.host.pz.CreateRMR())(t), must(y.host.pz.CreateRMR())(t)
	var ev Event
	post := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	next := func(e *EVD) {
		for e.Dequeue(&ev) != nil {
			_ = x.request.Dequeue(&ev) // polls the other side
		}
	}
	for _, tc := range []struct {
		name string
		run  func()
	}{
		{"dequeue, empty", func() { _ = x.request.Dequeue(&ev) }},
		{"wait, empty", func() { _, _ = x.request.Wait(0, 1, &ev) }},
		{"send", func() {
			post(y.PostRecv(room, 1, 0))
			post(x.PostSend(small, 2, 0))
			d.drain(t, 1, 1)
		}},
		{"send, large", func() {
			post(y.PostRecv(room, 1, 0))
			post(x.PostSend(big, 2, 0))
			d.drain(t, 1, 1)
		}},
		{"send, segments", func() {
			post(y.PostRecv(room, 1, 0))
			post(x.PostSend(split, 2, 0))
			d.drain(t, 1, 1)
		}},
		{"write", func() {
			post(x.PostRDMAWrite(small, 2, to, 0))
			d.drain(t, 1, 0)
		}},
		{"write, immediate", func() {
			post(y.PostRecv(room, 1, 0))
			post(x.PostRDMAWriteImm(small, 2, to, 7, 0))
			d.drain(t, 1, 1)
		}},
		{"fetch and add", func() {
			post(x.PostFetchAdd(1, x.lmr.Segment(0, 8), 2, word.Remote(0, 8), 0))
			d.drain(t, 1, 0)
		}},
		{"compare and swap", func() {
			post(x.PostCmpSwap(1, 2, x.lmr.Segment(0, 8), 2, word.Remote(0, 8), 0))
			d.drain(t, 1, 0)
		}},
		{"write, large", func() {
			post(x.PostRDMAWrite(big, 2, to, 0))
			d.drain(t, 1, 0)
		}},
		{"read", func() {
			post(x.PostRDMARead(small, 2, few, 0))
			d.drain(t, 1, 0)
		}},
		{"read, large", func() {
			post(x.PostRDMARead(big, 2, to, 0))
			d.drain(t, 1, 0)
		}},
		{"burst", func() {
			for range 100 {
				post(y.PostRecv(room, 1, 0))
				post(x.PostSend(small, 2, 0))
			}
			d.drain(t, 100, 100)
		}},
		{"bind", func() {
			_, err := rmr.Bind(x.EP, Binding{LMR: x.lmr, Segment: small[0], Priv: MemRemoteWrite}, 2, 0)
			post(err)
			d.drain(t, 1, 0)
		}},
		{"read to an RMR, send with invalidate", func() {
			c, err := theirs.Bind(y.EP, Binding{LMR: y.lmr, Segment: part[0], Priv: MemRemoteWrite}, 2, 0)
			post(err)
			next(y.request)
			post(y.PostRDMAReadToRMR(RMRTriplet{Context: c, Address: part[0].Address, Length: 64}, 3, x.lmr.Remote(0, 64), 0))
			next(y.request)
			post(y.PostRecv(room, 1, 0))
			post(x.PostSendWithInvalidate(small, 2, 0, c))
			d.drain(t, 1, 1)
		}},
		{"refused posts", func() {
			_ = x.PostSend(x.seg(0, 1<<30), 1, 0)
			_ = x.PostRDMARead(small, 1, to, 0x40)
			_ = x.PostRDMAWrite(big, 1, few, 0)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.run() // let tables grow to their final size
			if got := testing.AllocsPerRun(200, tc.run); got != 0 {
				t.Errorf("%v allocations, want none", got)
			}
		})
	}
}

// Posting to a shared receive queue and receiving from it do not allocate.
func TestSharedQueueNoAllocations(t *testing.T) {
	c, xs, _ := sharing(t, newSim(t), 2, 8)
	iov, seg := []LMRTriplet{c.lmr.Segment(0, 64)}, xs[0].seg(0, 64)
	var ev Event
	round := func() {
		for _, x := range xs {
			if err := x.PostSend(seg, 0, CompletionSuppress); err != nil {
				t.Fatal(err)
			}
		}
		for range xs {
			if err := c.PostRecv(iov, 0); err != nil {
				t.Fatal(err)
			}
		}
		for n := 0; n < len(xs); {
			if c.recv.Dequeue(&ev) == nil {
				n++
			}
			_ = xs[0].request.Dequeue(&ev)
		}
	}
	for range 600 { // let tables grow to their final size
		round()
	}
	if n := testing.AllocsPerRun(200, round); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}
