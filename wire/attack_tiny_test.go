package wire

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// famine is a siege in which the foe sends packets full of messages of one byte, and the victim has no receive. The
// foe's connection takes its receives from a shared queue, or has its own ones and gives no credit.
type famine struct {
	*siege
	cv   *Conn
	p    *depot // nil: the connection has its own receives
	dst  memory
	body []byte // of a full packet
	n    int    // messages in a full packet
	got  int    // messages that have arrived
}

func newFamine(t testing.TB, mtu int, shared bool, keys *seal.Limits) *famine {
	f := &famine{siege: newModeSiegeOn(t, simlink.Config{Frames: siegeFrames, MTU: mtu, FrameSize: 9216, Delay: time.Microsecond, Seed: 20}, keys)}
	f.dst = f.victim.memory(2)
	if shared {
		f.p = newDepot(f.victim, 1, 2)
		f.foe.down = false
		_, f.cv = f.joinQueue(f.foe, f.victim, f.p, plain)
		f.run(50 * time.Millisecond)
		f.foe.down = true
		f.drain()
		f.in, f.out = traffic{}, traffic{}
	} else {
		cfg := plain
		cfg.NoCredit = true
		f.cv, _ = f.join(cfg)
	}
	one := sendOnlyChunk(1)
	f.n = (mtu - proto.HeaderSize - f.cv.keys.trailer()) / len(one)
	f.body = bytes.Repeat(one, f.n)
	return f
}

// packet sends a full packet.
func (f *famine) packet() {
	h := f.header(f.cv, proto.Data)
	f.strike(&h, f.body)
}

// feed posts a receive, polls if the post asks for it, and takes the completion.
func (f *famine) feed() {
	c, seg := f.cv, f.dst.seg(0, 2)
	var err error
	if f.p != nil {
		c, err = f.p.Post(seg, 0)
	} else {
		_, err = c.PostRecv(seg, 0, 0)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	if c != nil {
		if poll, _ := f.victim.eng.Kick(c); poll {
			f.land()
		}
	}
	var done Completion
	for f.victim.recv.Pop(&done) {
		if done.Status != StatusSuccess || done.Length != 1 || f.dst.mem[0] != 0x66 {
			f.t.Fatalf("message %d: %+v, %x", f.got, done, f.dst.mem)
		}
		f.got++
	}
}

// eachFamine runs a test with both kinds of receives, in both modes.
func eachFamine(t *testing.T, test func(t *testing.T, f *famine)) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		for _, shared := range []bool{true, false} {
			t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) { test(t, newFamine(t, 1472, shared, keys)) })
		}
	})
}

// Attack 20: packets full of small messages arrive while the victim has no receive, and each packet comes again before
// each receive is posted. The victim must not read a message again that it has taken. It must not send an Ack for each
// message, only answers to packets.
func TestAttack20ManyMessagesWithoutReceives(t *testing.T) {
	eachFamine(t, func(t *testing.T, f *famine) {
		for range 3 {
			f.packet()
			start, sent := f.got, 0
			for f.got < start+f.n {
				f.packet() // again
				before, at, out := f.got, f.cv.recv.nextPSN, f.out.packets
				if f.feed(); f.got != before+1 {
					t.Fatalf("a receive was posted after %d messages: %d messages have arrived", before, f.got)
				}
				sent += f.out.packets - out
				if p := f.cv.recv.early.At(at, at); p != nil { // what was taken is now garbage
					clear(p.Bufs[0].Data[proto.HeaderSize : proto.HeaderSize+(f.got-start)*len(f.body)/f.n])
				}
			}
			if sent != 1 || f.cv.recv.notReady {
				t.Errorf("%d packets were sent because of %d receives, not ready %v", sent, f.n, f.cv.recv.notReady)
			}
		}
		if f.out.bytes > f.in.bytes {
			t.Errorf("%d bytes were answered by %d bytes", f.in.bytes, f.out.bytes)
		}
		f.end()
	})
}

// A packet waits for receives, and then comes again. It must not be read again from its start, whether the victim still
// holds it or has evicted it. If it is shorter than what was taken, the connection must break.
func TestPacketThatWaitsComesAgain(t *testing.T) {
	for _, tc := range []struct {
		name      string
		evict     bool
		left, got int // messages in the packet that comes again, and messages that arrive in all
	}{{"held", false, 0, 10}, {"evicted", true, 10, 10}, {"shorter", true, 1, 2}} {
		t.Run(tc.name, func(t *testing.T) {
			eachFamine(t, func(t *testing.T, f *famine) {
				one := sendOnlyChunk(1)
				f.body = bytes.Repeat(one, 10)
				f.packet()
				f.feed()
				f.feed()
				if tc.evict {
					f.cv.dropEarly(f.cv.recv.early.At(f.cv.recv.nextPSN, f.cv.recv.nextPSN))
				}
				f.body = append(make([]byte, 2*len(one)), bytes.Repeat(one, 8)...)[:tc.left*len(one)]
				f.packet()
				for f.cv.State() == Established && f.got < 10 {
					f.feed()
				}
				if f.got != tc.got {
					t.Errorf("%d messages have arrived, want %d", f.got, tc.got)
				}
				if tc.got < 10 {
					f.broken(f.cv, proto.ReasonProtocol)
					f.finish()
					return
				}
				f.end()
			})
		})
	}
}

// A packet was consumed in part, then it was evicted, then a receive was posted. The peer must not change the epoch now,
// because it would cut the data into other packets.
func TestNoEpochInPartOfAPacket(t *testing.T) {
	eachFamine(t, func(t *testing.T, f *famine) {
		f.packet()
		f.feed()
		r := &f.cv.recv
		f.cv.dropEarly(r.early.At(r.nextPSN, r.nextPSN))
		f.feed()
		epoch := r.epoch
		h := f.header(f.cv, proto.Ack)
		h.Flags, h.TS = proto.Epoch, h.TS+1
		if f.strike(&h, nil); r.notReady || r.epoch != epoch {
			t.Errorf("not ready %v, epoch %v, before %v", r.notReady, r.epoch, epoch)
		}
		f.end()
	})
}

// end ends the connection of the foe and the siege.
func (f *famine) end() {
	f.drop(f.cv)
	for f.victim.recv.Pop(new(Completion)) { // receives that no message has taken
	}
	f.finish()
}

func BenchmarkMessagesWithoutReceives(b *testing.B) {
	for _, shared := range []bool{true, false} {
		for _, mtu := range []int{856, 1472, 8972} {
			f := newFamine(b, mtu, shared, nil)
			b.Run(fmt.Sprintf("shared=%v/messages=%d", shared, f.n), func(b *testing.B) {
				sent, got := f.out.packets, f.got
				for b.Loop() {
					if f.got%f.n == 0 {
						f.packet()
					}
					f.feed()
				}
				b.ReportMetric(float64(f.out.packets-sent)/float64(f.got-got), "acks/message")
			})
		}
	}
}
