package xdp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

// fillTx fills the tx ring of a zero-copy socket while the link has no carrier: every kick succeeds but transmits
// nothing.
func fillTx(t *testing.T) *fakeKernel {
	t.Helper()
	k := newFakeNIC(t, 1500, 256)
	k.batch = 0
	*k.s.tx.flags = ringNeedWakeup
	to, err := k.s.Resolve(k.peer(), 1)
	if err != nil {
		t.Fatal(err)
	}
	bufs := make([]link.Buf, k.s.caps.TxFrames)
	if n := k.s.Alloc(bufs); n != len(bufs) {
		t.Fatalf("%d frames", n)
	}
	for i := range bufs {
		bufs[i].Path, bufs[i].Data = to, bufs[i].Data[:100]
	}
	k.answers = []unix.Errno{0}
	k.s.Send(bufs)
	return k
}

// While an interface has no carrier, its zero-copy tx ring does not move. The polls of the socket's owner must kick the
// driver then, at most once in stuckPolls polls. When the carrier is back, the packets must leave.
func TestStalledRingIsKicked(t *testing.T) {
	bufs := make([]link.Buf, maxSegments)
	for _, tc := range []struct {
		name string
		turn func(*Socket)
	}{{"Recv", func(s *Socket) { s.Recv(bufs) }}, {"Alloc", func(s *Socket) { s.Free(bufs[:s.Alloc(bufs)]) }}} {
		t.Run(tc.name, func(t *testing.T) {
			k := fillTx(t)
			const turns = 32 * stuckPolls
			k.answers, k.kicks = make([]unix.Errno, turns), 0 // no carrier
			for range turns {
				tc.turn(k.s)
			}
			if k.kicks == 0 || k.kicks > turns/stuckPolls {
				t.Errorf("%d kicks in %d turns, want 1 to %d", k.kicks, turns, turns/stuckPolls)
			}
			k.answers, k.batch = nil, 1<<10 // the carrier is back
			for range 2 * stuckPolls {
				tc.turn(k.s)
			}
			if got, want := len(k.sent), k.s.caps.TxFrames; got != want {
				t.Errorf("%d packets left, want %d", got, want)
			}
			k.s.reap()
			conserve(t, k.s)
		})
	}
}

// A ring that moves by itself is not kicked.
func TestMovingRingIsNotKicked(t *testing.T) {
	k := fillTx(t)
	bufs := make([]link.Buf, maxSegments)
	k.kicks = 0
	for i := range 100 * stuckPolls {
		if i%stuckPolls == 0 {
			k.transmit(1)
		}
		k.s.Recv(bufs)
	}
	if k.kicks != 0 {
		t.Errorf("%d kicks", k.kicks)
	}
}

// A socket accepts packets again after its interface was down, even if the driver then needs no wakeups.
func TestDownAndUpWithoutWakeup(t *testing.T) {
	k := fillTx(t)
	to, err := k.s.Resolve(k.peer(), 1)
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		bufs := make([]link.Buf, 1)
		k.s.Alloc(bufs)
		bufs[0].Path, bufs[0].Data = to, bufs[0].Data[:100]
		k.s.Send(bufs)
	}
	k.complete()
	k.answers = []unix.Errno{unix.ENETDOWN}
	send()
	if k.s.stall.Load() != down {
		t.Fatal("the interface is not known to be down")
	}
	*k.s.tx.flags = 0
	before := k.s.Stats()
	send()
	if after := k.s.Stats(); after.TxPackets != before.TxPackets+1 || after.TxDropped != before.TxDropped {
		t.Errorf("%+v, before %+v", after, before)
	}
}
