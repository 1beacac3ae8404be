package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// Data sent from link memory without a copy must arrive like copied data: in every operation, from any offset, in any
// size, and after packet loss.
func TestInPlace(t *testing.T) {
	const size = 1 << 18
	for _, loss := range []float64{0, 0.05} {
		for _, block := range []int{2048, 4096} {
			t.Run(fmt.Sprintf("loss %v/block %d", loss, block), func(t *testing.T) {
				w := newWorld(t, simlink.Config{Seed: 7, Delay: 10 * time.Microsecond, Loss: loss, Reorder: loss, MTU: 60000,
					FrameSize: block, RxFrameSize: 3840, Segments: 60000/block + 4, Memory: 4 * size}, 2)
				a, b := w.nodes[0], w.nodes[1]
				ca, cb := w.pair(ConnConfig{Zone: 1, MaxRecv: 8, MaxRequest: 8, MaxRecvIOV: 1, MaxRequestIOV: 3, ReadIn: 4, ReadOut: 4})
				r := rand.New(rand.NewPCG(1, 2))
				from, to := a.memory(size).fill(r), b.memory(size)
				served, got := b.memory(size).fill(r), a.memory(size)
				for range 40 {
					n := 1 + r.IntN(size/3)
					off := r.IntN(size/3 - 1)
					msg := from.seg(off, n)
					want := bytes.Clone(from.mem[off : off+n])
					if r.IntN(2) == 0 { // several pieces, of which some are too small to be sent without a copy
						cut := r.IntN(n)
						msg = append(from.seg(off, cut), from.seg(off+cut, n-cut)...)
					}
					if !b.postRecv(cb, to.seg(0, n), 1) || !a.post(ca, ca.PostSend(msg, 2, 0)) {
						t.Fatal("no room")
					}
					w.takes(b.recv)
					w.takes(a.request)
					if !bytes.Equal(to.mem[:n], want) {
						t.Fatalf("a message of %d bytes at %d is not what was sent", n, off)
					}
					a.post(ca, ca.PostWrite(from.seg(off, n), 3, to.at(off), 0))
					w.takes(a.request)
					if !bytes.Equal(to.mem[off:off+n], want) {
						t.Fatalf("a write of %d bytes at %d is not what was written", n, off)
					}
					a.post(ca, ca.PostRead(got.seg(0, n), 4, served.at(off), uint32(n), 0))
					w.takes(a.request)
					if !bytes.Equal(got.mem[:n], served.mem[off:off+n]) {
						t.Fatalf("a read of %d bytes at %d is not what is there", n, off)
					}
				}
				for i, n := range w.nodes {
					if s := n.eng.Stats(); 2*s.InPlaceBytes < s.TxBytes {
						t.Errorf("node %d: of %d bytes only %d were sent in place", i, s.TxBytes, s.InPlaceBytes)
					}
				}
			})
		}
	}
}

// takes waits for the completion of a request or receive, which must have succeeded.
func (w *world) takes(q *Queue) {
	w.t.Helper()
	var c Completion
	w.until("completion", 10*time.Second, func() bool { return q.Pop(&c) })
	if c.Kind != KindWork || c.Status != StatusSuccess {
		w.t.Fatalf("completion %+v", c)
	}
}

// If the memory of a request is gone in the middle of a packet, the frames of its earlier pieces must return.
func TestInPlaceAbandoned(t *testing.T) {
	const size = 1 << 16
	w := newWorld(t, simlink.Config{Seed: 7, MTU: 60000, FrameSize: 4096, RxFrameSize: 3840, Segments: 18, Memory: size}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(ConnConfig{Zone: 1, MaxRequest: 8, MaxRequestIOV: 2})
	w.run(10 * time.Millisecond) // time for the search for the path MTU
	good, gone, to := a.memory(size), a.memory(size), b.memory(2*size)
	if err := ca.PostWrite(append(good.seg(0, 40000), gone.seg(0, 20000)...), 1, to.at(0), 0); err != nil {
		t.Fatal(err)
	}
	a.host.Unregister(gone.Region)
	a.eng.Kick(ca)
	w.until("completion", 10*time.Second, func() bool { return a.request.Len() > 0 })
	var c Completion
	if a.request.Pop(&c); c.Status != StatusLocalProtection {
		t.Errorf("completion %+v, want a protection error", c)
	}
	if a.eng.Stats().InPlaceBytes == 0 {
		t.Error("nothing was to be sent in place")
	}
	w.run(time.Second)
	a.eng.Close()
	if n := a.link.Outstanding(); n != 0 {
		t.Errorf("%d frames are lost", n)
	}
}
