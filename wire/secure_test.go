package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// rounds executes each operation on a connection between nodes 0 and 1 n times, and checks all results.
func (w *world) rounds(ca, cb *Conn, n int) {
	w.t.Helper()
	const size = 30000
	a, b := w.nodes[0], w.nodes[1]
	r := randSource(w.seed)
	src, dst, box := a.memory(size).fill(r), b.memory(size), b.memory(size)
	served, got := b.memory(size).fill(r), a.memory(size)
	word, old := b.memory(8), a.memory(16)
	for i := range uint64(n) {
		length, off := 1+r.IntN(size/2), r.IntN(size/2)
		before := word.number(0)
		for range 3 {
			b.postRecv(cb, box.seg(0, size), i)
		}
		a.post(ca, ca.PostSend(src.seg(off, length), i, 0))
		a.post(ca, ca.PostWrite(src.seg(off, length), i, dst.at(off), 0))
		a.post(ca, ca.PostRead(got.seg(0, length), i, served.at(off), uint32(length), 0))
		a.post(ca, ca.PostFetchAdd(3, old.seg(0, 8)[0], i, word.at(0), 0))
		a.post(ca, ca.PostCmpSwap(before+3, before+5, old.seg(8, 8)[0], i, word.at(0), 0))
		w.until("a round", 20*time.Second, func() bool { return a.request.Len() == 5 && b.recv.Len() == 1 })
		w.drain(a.request)
		w.drain(b.recv)
		if !bytes.Equal(box.mem[:length], src.mem[off:off+length]) || !bytes.Equal(dst.mem[off:off+length], src.mem[off:off+length]) ||
			!bytes.Equal(got.mem[:length], served.mem[off:off+length]) || old.number(0) != before || word.number(0) != before+5 {
			w.t.Fatalf("round %d: %d bytes at %d are wrong", i, length, off)
		}
		a.post(ca, ca.PostWriteImm(src.seg(0, off), i, dst.at(0), 7, 0))
		a.post(ca, ca.PostSend(src.seg(off, 100), i, 0))
		w.until("the end of a round", 20*time.Second, func() bool { return a.request.Len() == 2 && b.recv.Len() == 2 })
		w.drain(a.request)
		w.drain(b.recv)
		if !bytes.Equal(dst.mem[:off], src.mem[:off]) || !bytes.Equal(box.mem[:100], src.mem[off:off+100]) {
			w.t.Fatalf("round %d: %d bytes with immediate data are wrong", i, off)
		}
		w.run(time.Duration(r.IntN(int(3 * time.Millisecond))))
	}
}

var rates = simlink.Config{Loss: 0.05, Reorder: 0.1, Duplicate: 0.1, Corrupt: 0.03}

// impaired adds the impairments of rates to a network.
func impaired(cfg simlink.Config) simlink.Config {
	cfg.Loss, cfg.Reorder, cfg.Duplicate, cfg.Corrupt = rates.Loss, rates.Reorder, rates.Duplicate, rates.Corrupt
	return cfg
}

// All operations work in secure mode: in packets of one frame and of several, from link memory, over networks that lose,
// reorder, duplicate and change packets, and while keys change.
func TestSecureOperations(t *testing.T) {
	small := simlink.Config{Seed: 3, Delay: 5 * time.Microsecond}
	jumbo := simlink.Config{Seed: 4, Delay: 5 * time.Microsecond, MTU: 8952, FrameSize: 2048, RxFrameSize: 700}
	inPlace := simlink.Config{Seed: 5, Delay: 5 * time.Microsecond, MTU: 9000, FrameSize: 1024, Segments: 18, Memory: 1 << 20}
	for _, tc := range []struct {
		name string
		net  simlink.Config
		keys *seal.Limits
	}{
		{"small", small, usual}, {"small, updates", small, frequent}, {"small, impaired", impaired(small), frequent},
		{"jumbo", jumbo, usual}, {"jumbo, impaired", impaired(jumbo), frequent},
		{"link memory", inPlace, usual}, {"link memory, impaired", impaired(inPlace), frequent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newSecureWorld(t, tc.net, Limits{}, tc.keys, 2)
			ca, cb := w.pair(plain)
			w.run(time.Second) // time for the search for the path MTU
			w.rounds(ca, cb, 100)
			if most := w.nodes[0].link.PathMTU(ca.path); ca.pmtu.Size <= basePacket || cb.pmtu.Size <= basePacket {
				t.Errorf("packets of %d and %d bytes; the path passes %d", ca.pmtu.Size, cb.pmtu.Size, most)
			}
			phases, _ := ca.keys.Phases()
			if w.model.numOpen < 500 || w.noise.model.opened != 2 {
				t.Errorf("the model knows %d packets and %d messages of handshakes", w.model.numOpen, w.noise.model.opened)
			}
			if many := phases > 10; many != (tc.keys == frequent) {
				t.Errorf("%d key updates", phases)
			}
			for i, n := range w.nodes {
				s := n.eng.Stats()
				if tc.net.Loss > 0 && (s.Early == 0 || s.Replayed == 0 || s.Unopened == 0 || s.Retransmits == 0) {
					t.Errorf("node %d: the network changed nothing: %+v", i, s.Counters)
				}
				if tc.net.Loss == 0 && (s.Replayed != 0 || s.Unopened != 0) || s.InPlaceBytes != 0 || s.ProtocolErrors != 0 {
					t.Errorf("node %d: %d packets came again, %d did not open, %d bytes were sent in place, %d protocol errors", i,
						s.Replayed, s.Unopened, s.InPlaceBytes, s.ProtocolErrors)
				}
			}
			w.over(ca, cb)
		})
	}
}

// Packets that arrive on the wrong queue of a secure adapter are opened by the engine of their connection.
func TestSecureStraysCross(t *testing.T) { straysCross(t, usual, 0) }

// Each packet has a counter of its own, also if its contents are sent again: in any phase of the keys. The only packet that
// is sent again as it is, is the Closed of a connection whose keys are gone.
func TestAttack11NoNonceTwice(t *testing.T) {
	w := newSecureWorld(t, impaired(simlink.Config{Seed: 11, Delay: 5 * time.Microsecond}), Limits{}, frequent, 2)
	types := map[proto.Type]int{}
	for _, n := range w.nodes {
		next := uint32(0)
		var closed []byte
		w.tap(n, &tap{show: func(b []byte) {
			typ := typeOf(b)
			if !typ.Established() && typ != proto.Close && typ != proto.Closed || typ == proto.Closed && bytes.Equal(b, closed) {
				return
			}
			if typ == proto.Closed {
				closed = b
			}
			if types[typ]++; binary.BigEndian.Uint32(b[28:]) != next {
				t.Fatalf("counter %d, want %d", binary.BigEndian.Uint32(b[28:]), next)
			}
			next++
		}})
	}
	ca, cb := w.pair(plain)
	w.rounds(ca, cb, 100)
	s := w.nodes[0].eng.Stats()
	if phases, _ := ca.keys.Phases(); phases < 10 || s.Retransmits < 50 {
		t.Errorf("%d key updates, %d retransmissions", phases, s.Retransmits)
	}
	w.over(ca, cb)
	for _, typ := range []proto.Type{proto.Data, proto.Ack, proto.Probe, proto.Probed, proto.Close, proto.Closed} {
		if types[typ] == 0 {
			t.Errorf("no packet of type %d: %v", typ, types)
		}
	}
}

// A connection whose keys are used up ends, and nobody seals another packet with them.
func TestKeysUsedUp(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Seed: 9, Delay: time.Microsecond}, Limits{GiveUp: time.Second, KeepAlive: time.Second},
		&seal.Limits{Packets: 100, Update: 1 << 60, Age: time.Hour, Failures: 1 << 20}, 2)
	var last uint32
	w.tap(w.nodes[0], &tap{show: func(b []byte) {
		if typeOf(b).Established() {
			last = binary.BigEndian.Uint32(b[28:])
		}
	}})
	ca, cb := w.pair(plain)
	a, b := w.nodes[0], w.nodes[1]
	src, dst := a.memory(200_000), b.memory(200_000)
	a.post(ca, ca.PostWrite(src.seg(0, 200_000), 1, dst.at(0), 0))
	w.until("the end", 5*time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
	var c Completion
	if !a.request.Pop(&c) || c.Status != StatusTransport {
		t.Errorf("completion %+v", c)
	}
	if !a.connect.Pop(&c) || c.Kind != KindBroken || BreakReason(c.Data) != BreakKeyLimit {
		t.Errorf("completion %+v, want reason %d", c, BreakKeyLimit)
	}
	w.want(b.connect, KindBroken)
	if last != 99 {
		t.Errorf("the last packet had the counter %d, want 99", last)
	}
	w.run(5 * time.Second)
	a.eng.Close()
	if n := a.link.Outstanding(); n != 0 {
		t.Errorf("%d frames left", n)
	}
}

// A linger repeats Close until a sealed Closed comes or its tries are used up. The peer answers each repeat with the same
// packet. If both ends close at the same time, each has the other's Close, and neither repeats its own.
func TestSecureLinger(t *testing.T) {
	for _, tc := range []struct {
		name           string
		both, lossy    bool // both ends close; Closed is lost
		closes, closed int  // packets
		different      int  // packets of type Closed, without their repeats
	}{
		{"one end", false, false, 1, 1, 1},
		{"one end, lossy", false, true, closeTries, closeTries, 1},
		{"both ends", true, false, 2, 2, 2},
		{"both ends, lossy", true, true, 2, 2, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newSecureWorld(t, simlink.Config{Seed: 9, Delay: 10 * time.Microsecond}, Limits{}, usual, 2)
			closes, closed := 0, map[string]int{}
			for _, n := range w.nodes {
				w.tap(n, &tap{show: func(b []byte) {
					switch typeOf(b) {
					case proto.Close:
						closes++
					case proto.Closed:
						closed[string(b)]++
					default:
					}
				}, drop: func(b []byte) bool { return tc.lossy && typeOf(b) == proto.Closed }})
			}
			ca, cb := w.pair(plain)
			a, b := w.nodes[0], w.nodes[1]
			w.run(50 * time.Millisecond)
			w.poll()
			w.disconnect(a, ca, false)
			if tc.both {
				w.disconnect(b, cb, false)
			}
			w.poll()
			w.run(timeWait + 10*time.Millisecond)
			sent := 0
			for _, n := range closed {
				sent += n
			}
			if closes != tc.closes || sent != tc.closed || len(closed) != tc.different {
				t.Errorf("%d packets of type Close, %d of type Closed, %d of these different", closes, sent, len(closed))
			}
			if a.eng.Connections() != 0 || b.eng.Connections() != 0 || cb.State() != Closed {
				t.Errorf("%d and %d connections left, the peer is %v", a.eng.Connections(), b.eng.Connections(), cb.State())
			}
		})
	}
}

// An ICMP message, which nobody has authenticated, does not end a linger. Its tries do.
func TestSecureLingerIgnoresReports(t *testing.T) {
	for _, keys := range []*seal.Limits{usual, nil} {
		w := newSecureWorld(t, simlink.Config{Seed: 4, Delay: 10 * time.Microsecond, Refuse: true}, Limits{}, keys, 2)
		closes := 0
		w.tap(w.nodes[0], &tap{show: func(b []byte) {
			if typeOf(b) == proto.Close {
				closes++
			}
		}})
		w.nodes[0].eng.portReports.link = w.nodes[0].link
		ca, _ := w.pair(plain)
		w.crash(w.nodes[1])
		w.poll()
		if err := w.nodes[0].eng.Disconnect(ca, false); err != nil {
			t.Fatal(err)
		}
		w.run(5 * time.Second)
		if n := w.nodes[0].eng.Connections(); n != 0 || (closes == closeTries) != (keys != nil) {
			t.Errorf("secure %v: %d packets of type Close, %d connections left", keys != nil, closes, n)
		}
	}
}
