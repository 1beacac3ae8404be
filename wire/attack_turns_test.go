package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Attack 20: one address with many connections asks for a long RDMA read on each. The victim then has a window of
// packets to send on every connection. One Poll must send few of them, and a read of another address must not wait for
// them.
func TestAttack20ReadsOfManyConnections(t *testing.T) {
	const foes, long, short = 100, 1 << 20, 64 << 10
	s := newSiegeOn(t, simlink.Config{Frames: 8192, Delay: time.Microsecond, Seed: 20})
	conns := s.joinMany(foes, plain)
	e, friend := s.victim.eng, s.friend
	poll := func() {
		t.Helper()
		rx, tx := e.stats.RxPackets, e.stats.TxPackets
		s.land()
		if n, most := e.stats.TxPackets-tx, maxTransmit+maxTimers+e.stats.RxPackets-rx; n > most {
			t.Fatalf("one Poll sent %d packets, want %d at most", n, most)
		}
	}
	mem := s.victim.memory(long)
	for _, cv := range conns {
		h := s.header(cv, proto.Data)
		s.send(&h, readChunk(mem.remote, mem.base, long, 0))
	}
	for asked := e.stats.RxPackets + foes; e.stats.RxPackets < asked; {
		poll()
	}
	if e.sched.ready.conns < foes/2 {
		t.Fatalf("%d connections are ready: the test tests nothing", e.sched.ready.conns)
	}
	before := s.out.packets
	dst := friend.memory(short)
	friend.post(s.ca, s.ca.PostRead(dst.seg(0, short), 1, mem.at(0), short, 0))
	for friend.request.Len() == 0 && e.sched.ready.conns > 0 {
		friend.eng.Poll(Time(s.net.Now()))
		poll()
	}
	n := s.out.packets - before
	t.Logf("%d packets went to the foe during a read of %d bytes", n, short)
	if friend.request.Len() == 0 || n > foes*maxBurst/2 {
		t.Errorf("the friend's read: %d completions, %d packets to the foe", friend.request.Len(), n)
	}
	friend.request.Pop(new(Completion))
	for _, cv := range conns {
		s.drop(cv)
	}
	s.finish()
}
