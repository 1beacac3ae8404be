package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Attack 20: on each of two connections, hundreds of packets arrive early, and then the missing one. One Poll must
// consume few of them, and the Polls after it the rest.
func TestAttack20GapFilled(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		const early, most = 200, 2 * maxReceive
		s := newModeSiegeOn(t, simlink.Config{Frames: 8192, Delay: time.Microsecond, Seed: 20}, keys)
		conns := s.joinMany(2, plain)
		e := s.victim.eng
		ready := make([]byte, proto.ReadySize)
		proto.PutReady(ready)
		for _, cv := range conns {
			for i := range seq.Num(early) {
				h := s.header(cv, proto.Data)
				h.PSN += early - i
				s.strike(&h, ready)
			}
			if n := cv.recv.early.Packets(); n != early {
				t.Fatalf("%d packets are held, want %d: the test tests nothing", n, early)
			}
		}
		for _, cv := range conns {
			h := s.header(cv, proto.Data)
			s.send(&h, ready)
		}
		for end := s.net.Now() + int64(time.Millisecond); e.heldFrames > 0; {
			held := e.heldFrames
			s.land()
			if n := held - e.heldFrames; n > most || s.net.Now() > end {
				t.Fatalf("a Poll consumed %d early packets, want %d at most; %d are left", n, most, e.heldFrames)
			}
		}
		for _, cv := range conns {
			s.drop(cv)
		}
		s.finish()
	})
}

// A peer that sends Ready behind another chunk must break its connection: otherwise a packet could have hundreds of
// them.
func TestReadyBehindChunk(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		cv, _ := s.join(plain)
		b := make([]byte, 2*proto.ReadySize)
		proto.PutReady(b)
		proto.PutReady(b[proto.ReadySize:])
		h := s.header(cv, proto.Data)
		s.strike(&h, b)
		s.broken(cv, proto.ReasonProtocol)
		s.finish()
	})
}

// Attack 20: one address with many connections asks for a long RDMA read on each. The victim then has a window of
// packets to send on every connection. One Poll must send few of them, and a read of another address must not wait for
// them.
func TestAttack20ReadsOfManyConnections(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		const foes, long, short = 100, 1 << 20, 64 << 10
		s := newModeSiegeOn(t, simlink.Config{Frames: 8192, Delay: time.Microsecond, Seed: 20}, keys)
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
	})
}

// A receiver must hold packets up to the end of the largest receive window, and acknowledge them in a SACK.
func TestEarlyByTheLargestWindow(t *testing.T) {
	s := newSiegeOn(t, simlink.Config{Frames: 8 * siegeFrames, Delay: time.Microsecond, Seed: 1})
	cv, _ := s.join(plain)
	for _, d := range []seq.Num{1, 300, proto.MaxWindow - 1} {
		h := s.header(cv, proto.Data)
		h.PSN += d
		s.strike(&h, nil)
		last := s.out.last
		at := proto.HeaderSize + int(d-1)/8
		if proto.Type(last[0]&15) != proto.Ack || !proto.SACKFits(len(last)-proto.HeaderSize-proto.TrailerSize) || last[at]>>((d-1)%8)&1 != 1 {
			t.Errorf("%d packets early: told % x", d, last)
		}
	}
	if cv.recv.early.Packets() != 3 {
		t.Errorf("%d packets held, want 3", cv.recv.early.Packets())
	}
	s.drop(cv)
	s.run(20 * time.Millisecond)
	s.finish()
}
