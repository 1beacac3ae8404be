package wire

import (
	"testing"
	"time"
	"unsafe"

	"github.com/datxdp/datxdp/internal/simlink"
)

// A read that can never leave must be refused, because it would block every later request.
func TestReadsNotAllowed(t *testing.T) {
	for _, tc := range []struct{ in, out int }{{0, 4}, {4, 0}} {
		w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
		cfg := plain
		cfg.ReadIn, cfg.ReadOut = tc.in, tc.out
		ca, _ := w.pair(cfg)
		a, b := w.nodes[0], w.nodes[1]
		src, dst := a.memory(64), b.memory(64)
		if err := ca.PostRead(src.seg(0, 64), 1, dst.at(0), 64, 0); err != ErrNoReads {
			t.Errorf("%+v: got %v, want %v", tc, err, ErrNoReads)
		}
		a.post(ca, ca.PostWrite(src.seg(0, 64), 2, dst.at(0), 0))
		w.until("the write", time.Second, func() bool { return a.request.Len() == 1 })
	}
}

// A work queue entry must be exactly one cache line, so that a post writes only one line.
func TestWorkIsALine(t *testing.T) {
	var r workRing
	if r.init(64, 1, 1); unsafe.Sizeof(work{}) != 64 || uintptr(unsafe.Pointer(&r.slots[0]))%64 != 0 {
		t.Errorf("%d bytes, from %p", unsafe.Sizeof(work{}), &r.slots[0])
	}
}
