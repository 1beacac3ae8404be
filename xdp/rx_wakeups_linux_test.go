package xdp

import (
	"testing"

	"github.com/datxdp/datxdp/link"
)

// In this test the NIC's receive ring is larger than the fill ring, so the test fills the NIC's ring in several rounds.
// Afterwards the NIC takes no more frames, and the frames of the last round stay in the fill ring. Then an idle owner
// must not make a system call.
func TestFillRingBesideLargeNIC(t *testing.T) {
	const slots = 512
	k := newFakeNIC(t, 1500, slots)
	bufs := make([]link.Buf, maxSegments)
	for held := uint32(0); held < slots; { // in several rounds, because the fill ring is smaller than the NIC's ring
		n := min(k.fill.refresh(), slots-held)
		if n == 0 {
			t.Fatalf("the NIC got %d frames of %d", held, slots)
		}
		k.fill.release(n)
		held += n
		k.s.Recv(bufs)
	}
	if left := k.fill.refresh(); left < refillBatch {
		t.Errorf("%d frames left in the fill ring", left)
	}
	conserve(t, k.s)
}

// A driver that always has the need-wakeup flag set gets few wakeups, but one at once when there are new frames.
func TestNudgesAreBounded(t *testing.T) {
	const idle = 1 << 16
	bufs := make([]link.Buf, maxSegments)
	spin := func(k *fakeKernel) int {
		k.rxWakeups = 0
		for range idle {
			k.s.Recv(bufs)
		}
		return k.rxWakeups
	}
	for _, tc := range []struct {
		name  string
		empty bool
		most  int
	}{{"frames that the driver does not take", false, 20}, {"empty fill ring", true, idle/rxWakeupPause + 1}} {
		t.Run(tc.name, func(t *testing.T) {
			k := newFake(t, 1500)
			*k.s.fill.flags = ringNeedWakeup
			if tc.empty { // the NIC has taken all frames
				k.fill.release(k.fill.refresh())
			}
			if n := spin(k); n == 0 || n > tc.most {
				t.Errorf("%d system calls in %d idle polls, want 1 to %d", n, idle, tc.most)
			}
			fresh(t, k, bufs)
		})
	}
}

// A driver that has no frame for the rest of a packet must be woken when there is one.
func TestIncompletePacketWakesDriver(t *testing.T) {
	k := newFakeNIC(t, 9000, 64)
	*k.s.fill.flags = ringNeedWakeup
	bufs := make([]link.Buf, maxSegments)
	k.s.Recv(bufs)
	k.piece(t, packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(3000)), true)
	fresh(t, k, bufs)
}

// fresh adds frames to the fill ring and checks that the driver is woken.
func fresh(t *testing.T, k *fakeKernel, bufs []link.Buf) {
	t.Helper()
	k.fill.release(min(k.fill.refresh(), 2*refillBatch)) // makes room
	k.s.level.target += 2 * refillBatch
	k.rxWakeups = 0
	k.s.Recv(bufs)
	if k.rxWakeups != 1 {
		t.Errorf("%d system calls after a refill, want 1", k.rxWakeups)
	}
}
