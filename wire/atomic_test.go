package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// number returns the word at an offset.
func (m memory) number(off int) uint64 { return binary.NativeEndian.Uint64(m.mem[off:]) }

// Two connections post atomics on the same word over a lossy network. Each must execute once.
func TestAtomicsOnce(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, simlink.Config{Seed: seed, Delay: 5 * time.Microsecond, Loss: 0.1, Reorder: 0.1, Duplicate: 0.1}, 2)
		a, b := w.nodes[0], w.nodes[1]
		c1, _ := w.pair(plain)
		c2, _ := w.pair(plain)
		const count = 200
		word, old := b.memory(8), a.memory(8*count)
		for i := range count {
			c := []*Conn{c1, c2}[i%2]
			for !a.post(c, c.PostFetchAdd(1, old.seg(8*i, 8)[0], uint64(i), word.at(0), 0)) {
				w.step()
			}
		}
		w.until("all additions", time.Minute, func() bool { return a.request.Len() == count })
		w.drain(a.request)
		seen := map[uint64]bool{}
		for i := range count {
			seen[old.number(8*i)] = true
		}
		if len(seen) != count || word.number(0) != count {
			t.Errorf("seed %d: %d additions brought %d values and made %d", seed, count, len(seen), word.number(0))
		}
	}
}

func TestCompareSwap(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(plain)
	word, old := b.memory(8), a.memory(16)
	for _, tc := range []struct{ was, comp, swap, want uint64 }{
		{0, 0, 0, 0},
		{0, 0, ^uint64(0), ^uint64(0)},
		{1 << 63, 1 << 63, 1, 1},
		{1<<63 | 1, 1 << 63, 5, 1<<63 | 1},
		{0x0102030405060708, 0x0807060504030201, 5, 0x0102030405060708},
		{7, 8, 7, 7},
	} {
		binary.NativeEndian.PutUint64(word.mem, tc.was)
		a.post(ca, ca.PostCmpSwap(tc.comp, tc.swap, old.seg(3, 13)[0], 1, word.at(0), 0)) // misaligned, and longer
		w.until("the swap", time.Second, func() bool { return a.request.Len() == 1 })
		var c Completion
		if a.request.Pop(&c); c.Status != StatusSuccess || c.Op != OpCmpSwap || c.Length != 8 || c.Cookie != 1 {
			t.Errorf("%+v: %+v", tc, c)
		}
		if got := word.number(0); got != tc.want || old.number(3) != tc.was {
			t.Errorf("%+v: the word is %#x, was %#x", tc, got, old.number(3))
		}
		if !bytes.Equal(old.mem[11:], make([]byte, 5)) || !bytes.Equal(old.mem[:3], make([]byte, 3)) {
			t.Errorf("%+v: bytes beside the old value were written", tc)
		}
	}
}

// The response to an atomic must be kept until it is acknowledged. If the response is lost, the same response must be
// sent again, even if the word has changed and the region is unregistered.
func TestAtomicAnswerKept(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(plain)
	word, old := b.memory(8), a.memory(8)
	binary.NativeEndian.PutUint64(word.mem, 40)
	w.net.SetLoss(b.addr, a.addr, 1)
	a.post(ca, ca.PostFetchAdd(2, old.seg(0, 8)[0], 1, word.at(0), 0))
	w.run(20 * time.Millisecond)
	if got := word.number(0); got != 42 || a.request.Len() != 0 {
		t.Fatalf("the word is %d, %d completions", got, a.request.Len())
	}
	binary.NativeEndian.PutUint64(word.mem, 1000)
	b.host.Unregister(word.Region)
	w.net.SetLoss(b.addr, a.addr, 0)
	w.until("the answer", time.Second, func() bool { return a.request.Len() == 1 })
	if w.drain(a.request); old.number(0) != 40 || word.number(0) != 1000 {
		t.Errorf("the answer is %d, the word %d", old.number(0), word.number(0))
	}
	if b.eng.Stats().Retransmits == 0 {
		t.Error("the test tests nothing")
	}
}

// An atomic needs all three rights of atomicRights, existing memory and an aligned word. Otherwise the connection must
// break and the memory must not change.
func TestAtomicDenied(t *testing.T) {
	const base = 0x4000
	for _, tc := range []struct {
		name   string
		rights Rights
		zone   uint32
		aim    func(r *Region) Remote
	}{
		{"no right to atomics", allRights &^ RemoteAtomic, 1, nil},
		{"no right to read", allRights &^ RemoteRead, 1, nil},
		{"no right to write", allRights &^ RemoteWrite, 1, nil},
		{"the right to atomics alone", RemoteAtomic, 1, nil},
		{"other zone", allRights, 2, nil},
		{"wrong key", allRights, 1, func(r *Region) Remote { return Remote{r.remote ^ 1, base} }},
		{"local key", allRights, 1, func(r *Region) Remote { return Remote{r.local, base} }},
		{"one byte on", allRights, 1, func(r *Region) Remote { return Remote{r.remote, base + 1} }},
		{"four bytes on", allRights, 1, func(r *Region) Remote { return Remote{r.remote, base + 4} }},
		{"behind the end", allRights, 1, func(r *Region) Remote { return Remote{r.remote, base + 64} }},
		{"over the end", allRights, 1, func(r *Region) Remote { return Remote{r.remote, base + 60} }},
		{"before the start", allRights, 1, func(r *Region) Remote { return Remote{r.remote, base - 8} }},
		{"last address", allRights, 1, func(r *Region) Remote { return Remote{r.remote, ^uint64(0) - 7} }},
	} {
		for _, swap := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/swap %v", tc.name, swap), func(t *testing.T) {
				w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
				a, b := w.nodes[0], w.nodes[1]
				ca, cb := w.pair(plain)
				arena := bytes.Repeat([]byte{0xaa}, 192)
				r, err := b.host.Register(arena[64:128:128], base, tc.zone, tc.rights)
				if err != nil {
					t.Fatal(err)
				}
				to := Remote{r.remote, base}
				if tc.aim != nil {
					to = tc.aim(r)
				}
				local := a.memory(8).seg(0, 8)[0]
				if swap {
					a.post(ca, ca.PostCmpSwap(0xaaaaaaaaaaaaaaaa, 1, local, 1, to, 0))
				} else {
					a.post(ca, ca.PostFetchAdd(1, local, 1, to, 0))
				}
				w.until("the end", time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
				var c Completion
				if !a.request.Pop(&c) || c.Status != StatusRemoteAccess {
					t.Errorf("%+v", c)
				}
				if !bytes.Equal(arena, bytes.Repeat([]byte{0xaa}, 192)) {
					t.Error("memory was touched")
				}
				if b.eng.Stats().ProtectionErrors != 1 {
					t.Error("no protection error was counted")
				}
			})
		}
	}
}

// The address in memory must be aligned, not the address that the consumer registered.
func TestAtomicAlignment(t *testing.T) {
	buf := make([]byte, 24)
	aligned := 0
	for off := range 8 {
		first, second := atomicWord(buf[off:off+8]) != nil, atomicWord(buf[off+8:off+16]) != nil
		if first != second {
			t.Errorf("offset %d is aligned %v, %d is %v", off, first, off+8, second)
		}
		if first {
			aligned++
		}
	}
	if aligned != 1 {
		t.Errorf("%d of 8 places are aligned", aligned)
	}
}

// Atomics must wait like reads until the peer can serve them, and a fence must wait for them.
func TestAtomicsTakePlacesOfReads(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 50 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	cfg := plain
	cfg.ReadIn, cfg.ReadOut = 2, 3
	ca, cb := w.pair(cfg)
	word, mem := b.memory(8), a.memory(64)
	for i := range 4 {
		a.post(ca, ca.PostFetchAdd(1, mem.seg(8*i, 8)[0], uint64(i), word.at(0), 0))
	}
	a.post(ca, ca.PostRead(mem.seg(32, 8), 4, word.at(0), 8, 0))
	a.post(ca, ca.PostWrite(mem.seg(40, 8), 5, word.at(0), Fence))
	most := 0
	w.until("all", time.Second, func() bool {
		most = max(most, int(ca.readsOut))
		return a.request.Len() == 6
	})
	if most != 2 || cb.resp.limit != 2 {
		t.Errorf("%d atomics were outstanding, want 2", most)
	}
	if mem.number(24) != 3 || mem.number(32) != 4 || word.number(0) != 0 {
		t.Errorf("the last addition brought %d, the read %d, the word is %d", mem.number(24), mem.number(32), word.number(0))
	}
	cfg.ReadOut = 0
	ca, _ = w.pair(cfg)
	if err := ca.PostFetchAdd(1, mem.seg(0, 8)[0], 1, word.at(0), 0); err != ErrNoReads {
		t.Errorf("without places for reads: %v", err)
	}
}

func TestAtomicPostErrors(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a := w.nodes[0]
	ca, _ := w.pair(plain)
	mem := a.memory(64)
	readOnly, err := a.host.Register(make([]byte, 8), 0x1000, 1, LocalRead)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		local Segment
		want  error
	}{
		"too short":        {mem.seg(0, 7)[0], ErrBounds},
		"beyond the end":   {mem.seg(57, 8)[0], ErrBounds},
		"no such region":   {Segment{Context: 1, Length: 8}, ErrBadKey},
		"no right":         {Segment{Context: readOnly.local, Length: 8, Address: 0x1000}, ErrRights},
		"aligned to a bit": {mem.seg(1, 8)[0], nil},
	} {
		if err := ca.PostFetchAdd(1, tc.local, 1, Remote{}, 0); err != tc.want {
			t.Errorf("%s: fetch and add: %v, want %v", name, err, tc.want)
		}
		if err := ca.PostCmpSwap(1, 2, tc.local, 1, Remote{}, 0); err != tc.want {
			t.Errorf("%s: compare and swap: %v, want %v", name, err, tc.want)
		}
	}
}

// If local memory is gone when the response arrives, the connection must break and the memory must not be written.
func TestAtomicIntoFreedMemory(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 50 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(plain)
	word, old := b.memory(8), a.memory(8)
	binary.NativeEndian.PutUint64(word.mem, 5)
	a.post(ca, ca.PostFetchAdd(1, old.seg(0, 8)[0], 1, word.at(0), 0))
	w.run(60 * time.Microsecond)
	a.host.Unregister(old.Region)
	w.until("the end", time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
	var c Completion
	if !a.request.Pop(&c) || c.Status != StatusLocalProtection || old.number(0) != 0 || word.number(0) != 6 {
		t.Errorf("%+v, old value %d, word %d", c, old.number(0), word.number(0))
	}
}

// A response that fits no request, or comes twice, must break the connection.
func TestAtomicFalseAnswers(t *testing.T) {
	for name, body := range map[string][]byte{
		"answer of a read":   answerChunk(proto.Last, 8, 0, 0),
		"two answers":        append(atomicAnswer(0, 1), atomicAnswer(0, 1)...),
		"answer not asked":   atomicAnswer(1, 1),
		"answer to the past": atomicAnswer(^(proto.Chunk{}).Num, 1),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t)
			cv, _ := s.join(plain)
			old := s.victim.memory(8)
			s.victim.post(cv, cv.PostFetchAdd(1, old.seg(0, 8)[0], 1, Remote{}, 0))
			s.victim.eng.Poll(Time(s.net.Now()))
			h := s.header(cv, proto.Data)
			s.strike(&h, body)
			if cv.State() != Closed || s.victim.eng.Stats().ProtocolErrors != 1 {
				t.Errorf("state %d", cv.State())
			}
		})
	}
}
