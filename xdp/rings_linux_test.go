package xdp

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
)

// used returns the number of used slots of a ring.
func used(t *testing.T, s *Socket, name string) int {
	t.Helper()
	for _, r := range s.Rings() {
		if r.Name == name {
			if r.Used < 0 || r.Used > r.Size {
				t.Fatalf("%s: %d of %d", name, r.Used, r.Size)
			}
			return r.Used
		}
	}
	t.Fatalf("there is no %s ring", name)
	return 0
}

// Rings shows the frames that wait in each ring. The kernel's counters show the packets lost because no frame was free.
func TestRings(t *testing.T) {
	p := newPair(t, pairOptions{mtu: 1500})
	a, b := p.ends[lab.A], p.ends[lab.B]
	to := p.path(t, lab.A)
	full := used(t, b, "fill")
	if full == 0 {
		t.Error("the kernel has no frame to receive into")
	}
	a.Send(message(t, a, to, 64, 1))
	deadline := time.Now().Add(patience)
	for used(t, b, "rx") == 0 {
		if time.Now().After(deadline) {
			t.Fatalf("the packet is not in the rx ring: %+v", b.Rings())
		}
	}
	for n := uint32(2); ; n++ { // until the rx ring is full, because nothing receives
		a.Send(message(t, a, to, 64, n))
		if k := b.KernelStats(); k.FillRingEmpty+k.RxRingFull+k.RxDropped > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d packets, and none lost: %+v, %+v", n, b.Rings(), b.KernelStats())
		}
	}
	if got := used(t, b, "rx"); got < full/2 {
		t.Errorf("%d packets wait when some are lost, %d frames were there", got, full)
	}
	last := b.KernelStats()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Rings() != nil {
		t.Error("a closed socket has rings")
	}
	if got := b.KernelStats(); got.FillRingEmpty < last.FillRingEmpty || got.RxDropped < last.RxDropped {
		t.Errorf("after the close %+v, before %+v", got, last)
	}
}
