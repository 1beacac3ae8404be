package fairqueue

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// bench is a queue in virtual time. A flow is woken by its number.
type bench struct {
	Queue[int]
	t     *testing.T
	now   clock.Time
	flows map[int]*Flow[int]
}

func newBench(t *testing.T, buffers int) *bench {
	b := &bench{Queue: New[int](time.Hour), t: t, flows: map[int]*Flow[int]{}}
	for range buffers {
		b.Put()
	}
	return b
}

// add adds flow id to the peer with an address, in the /24 network of the address.
func (b *bench) add(id int, addr string) *Flow[int] {
	a := netip.MustParseAddr(addr)
	network, _ := a.Prefix(24)
	f := new(Flow[int])
	b.Add(f, netip.PrefixFrom(a, 32), network, b.now)
	b.flows[id] = f
	return f
}

// begin makes a flow take a buffer for a message of several packets.
func (b *bench) begin(id int) bool {
	f := b.flows[id]
	if !b.Take(f, id, b.now) {
		return false
	}
	b.Hold(f, 0, b.now)
	return true
}

// finish ends the message of a flow and frees its buffer. Then it serves the next flow and returns its number.
func (b *bench) finish(id int) int {
	f := b.flows[id]
	b.release(f)
	return b.serve()
}

// release ends the message of a flow and frees its buffer.
func (b *bench) release(f *Flow[int]) {
	f.Complete(1)
	b.Release(f, 0, b.now)
	b.Put()
}

// serve begins a message of the flow that is served next. It returns the number of the flow.
func (b *bench) serve() int {
	next := b.Give()
	if next != 0 && !b.begin(next) {
		b.t.Fatalf("flow %d was told of a buffer and got none", next)
	}
	return next
}

// One peer must hold at most half of the buffers, and each of two peers a third.
func TestDynamicThreshold(t *testing.T) {
	for peers, want := range map[int]int{1: 6, 2: 4, 3: 3} {
		b := newBench(t, 12)
		held := make([]int, peers)
		for id := 1; id <= 12*peers; id++ {
			i := id % peers
			b.add(id, netip.AddrFrom4([4]byte{10, 0, byte(i), 1}).String())
			if b.waiting == 0 && b.begin(id) {
				held[i]++
			}
		}
		for i, n := range held {
			if n != want {
				t.Errorf("%d peers: peer %d holds %d of 12, want %d", peers, i, n, want)
			}
		}
	}
}

// A peer with many flows and a peer with one flow must get alternate turns. A peer's flows are served in order.
func TestRoundRobin(t *testing.T) {
	b := newBench(t, 1)
	b.add(1, "10.0.0.1")
	b.begin(1)
	for id := 11; id <= 14; id++ {
		b.add(id, "10.0.1.1")
		b.begin(id)
	}
	b.add(21, "10.0.2.1")
	b.begin(21)
	last := 1
	for i, want := range []int{11, 21, 12, 13, 14} {
		if last = b.finish(last); last != want {
			t.Fatalf("turn %d is of flow %d, want %d", i, last, want)
		}
	}
	if b.finish(last) != 0 || b.Waiting() != 0 || b.Held() != 0 || b.Free() != 1 {
		t.Errorf("%d wait, %d held, %d free", b.Waiting(), b.Held(), b.Free())
	}
}

// Time must drain the bucket of a message only while other flows wait. Bytes must fill it.
func TestProgress(t *testing.T) {
	for _, tc := range []struct {
		name   string
		others string // address of a waiting flow; empty: none waits
		spare  bool   // a buffer is free, but the waiting flow does not take it
		bytes  uint32 // bytes that arrive in each of ten steps of 100 ms
		left   time.Duration
	}{
		{"nobody waits", "", false, 0, ProgressTimeout},
		{"another peer waits", "10.0.1.1", false, 0, ProgressTimeout - time.Second},
		{"another peer waits beside a free buffer", "10.0.1.1", true, 0, ProgressTimeout},
		{"another of the peer waits", "10.0.0.1", false, 0, ProgressTimeout - time.Second},
		{"half of the least rate", "10.0.1.1", false, MinRate / 20, ProgressTimeout - time.Second/2},
		{"the least rate", "10.0.1.1", false, MinRate/10 + 1, ProgressTimeout},
	} {
		b := newBench(t, 1)
		f := b.add(1, "10.0.0.1")
		b.begin(1)
		if tc.others != "" {
			b.add(2, tc.others)
			b.begin(2)
		}
		if tc.spare {
			b.Put()
		}
		got := uint32(0)
		for range 10 {
			b.now = b.now.Add(100 * time.Millisecond)
			got += tc.bytes
			b.update(f, got, b.now)
		}
		if d := (f.bucket.left - tc.left).Abs(); d > time.Millisecond {
			t.Errorf("%s: %v left, want %v", tc.name, f.bucket.left, tc.left)
		}
	}
}

// The progress timeout must not exceed maxTimeout.
func TestTimeoutIsBounded(t *testing.T) {
	for _, most := range []time.Duration{time.Millisecond, time.Hour} {
		if q := New[int](most); q.Timeout() != min(most, ProgressTimeout) {
			t.Errorf("at most %v: %v", most, q.Timeout())
		}
	}
}

// A peer with a slow message counts as slow for SlowTime. In this time, all other peers must get their turns before the
// slow peer. In the slow peer's network, a peer that has completed a message must keep its turn, but a peer that has
// not must wait until peers of other networks have had their turns. After SlowTime, all turns must be as usual.
func TestClasses(t *testing.T) {
	b := newBench(t, 1)
	b.add(1, "10.0.0.1") // the slow peer
	b.add(2, "10.0.0.2") // an unknown peer of the same network
	b.add(3, "10.0.0.3").Complete(8)
	b.add(4, "10.0.1.1") // a peer of another network
	b.begin(1)
	b.begin(4)
	b.now = b.now.Add(SlowMessage + time.Millisecond)
	if b.finish(1) != 4 {
		t.Fatal("the flow that waits is not served")
	}
	for _, id := range []int{1, 2, 3} {
		b.begin(id)
	}
	b.add(5, "10.0.2.1")
	b.begin(5)
	last := 4
	for i, want := range []int{3, 5, 2, 1} {
		if last = b.finish(last); last != want {
			t.Fatalf("turn %d is of flow %d, want %d", i, last, want)
		}
	}
	b.now = b.now.Add(SlowTime)
	b.begin(2)
	b.begin(4)
	for i, want := range []int{2, 4} {
		if last = b.finish(last); last != want {
			t.Fatalf("turn %d after SlowTime is of flow %d, want %d", i, last, want)
		}
	}
}

// Proven peers are peers without slow messages for ProvenTime. While slow peers of many other networks wait, proven
// peers must get ProvenTurns turns, the other peers must get one turn, and so on.
func TestProvenPeers(t *testing.T) {
	b := newBench(t, 1)
	b.add(1, "10.0.0.1").Complete(8)
	b.add(2, "10.0.0.1").Complete(8)
	b.now = b.now.Add(ProvenTime)
	for id := 100; id < 200; id++ {
		b.add(id, netip.AddrFrom4([4]byte{10, 1, byte(id), 1}).String())
		b.begin(id)
	}
	b.now = b.now.Add(SlowMessage + time.Millisecond)
	last := b.finish(100)
	turns := map[bool]int{}
	for range 10 * (ProvenTurns + 1) {
		for id := range 2 {
			if id+1 != last {
				b.begin(id + 1)
			}
		}
		last = b.finish(last)
		turns[last < 100]++
		b.check()
	}
	if turns[true] != 10*ProvenTurns || turns[false] != 10 {
		t.Errorf("the proven peer got %d turns and the others %d, want %d and 10", turns[true], turns[false], 10*ProvenTurns)
	}
}

// A peer that becomes slow while it waits must lose its turn.
func TestSlowWhileItWaits(t *testing.T) {
	b := newBench(t, 1)
	b.add(1, "10.0.0.1")
	b.add(2, "10.0.0.1")
	b.add(3, "10.0.1.1")
	b.begin(1)
	b.begin(2)
	b.begin(3)
	b.now = b.now.Add(SlowMessage + time.Millisecond)
	if got := b.finish(1); got != 3 {
		t.Errorf("flow %d is served, want 3", got)
	}
}

// The slow table must stay bounded, and must first delete the entries whose time is over.
func TestSlowTableIsBounded(t *testing.T) {
	table := slowTable{}
	key := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32)
	}
	for i := range 2 * MaxSlow {
		table.add(key(i), 0)
		if len(table) > MaxSlow {
			t.Fatalf("%d entries", len(table))
		}
	}
	later := clock.Time(0).Add(SlowTime)
	table.add(key(5000), later)
	if len(table) != 1 {
		t.Errorf("%d entries after their time, want 1", len(table))
	}
}

// check compares the counts of a queue with its flows.
func (b *bench) check() {
	held, waiting, heldBy := map[*peer[int]]uint32{}, map[*peer[int]]int{}, map[*network[int]]uint32{}
	messages := 0
	for _, f := range b.flows {
		if f.holds || f.given {
			held[f.peer]++
			heldBy[f.peer.net]++
		}
		if f.holds {
			messages++
		}
		if f.Waits() {
			waiting[f.peer]++
		}
	}
	sum := 0
	for _, p := range b.peers {
		if p.held != held[p] || p.waiting.Len() != waiting[p] || p.node.Listed() != (waiting[p] > 0) {
			b.t.Fatalf("%v: %d held and %d waiting, want %d and %d", p.addr, p.held, p.waiting.Len(), held[p], waiting[p])
		}
	}
	total, holders := uint32(0), map[*network[int]]uint32{}
	for p := range held {
		holders[p.net]++
	}
	for _, n := range b.nets {
		if n.held != heldBy[n] || n.holders != holders[n] {
			b.t.Fatalf("%v: %d peers hold %d, want %d and %d", n.prefix, n.holders, n.held, holders[n], heldBy[n])
		}
		total += n.held
	}
	if b.held != total || int(b.holders) != len(heldBy) || b.messages.Len() != messages {
		b.t.Fatalf("%d networks hold %d, %d messages; want %d, %d, %d", b.holders, b.held, b.messages.Len(), len(heldBy), total, messages)
	}
	for i := range b.active {
		for n := b.active[i].First(); n != nil; n = n.Next() {
			for m := n.Elem().active[i].First(); m != nil; m = m.Next() {
				if p := m.Elem(); int(p.class) != i || p.net != n.Elem() {
					b.t.Fatalf("%v of class %d is among those of class %d", p.addr, p.class, i)
				}
				sum += m.Elem().waiting.Len()
			}
		}
	}
	if sum != b.waiting {
		b.t.Fatalf("%d flows of active peers wait, want %d", sum, b.waiting)
	}
}

// Turns must rotate among the networks, not among all peers: a peer waits for at most one message of each other
// network, however many peers that network has.
func TestNetworksTakeTurns(t *testing.T) {
	b := newBench(t, 4)
	for id := range 400 { // all addresses of two networks
		b.add(id, netip.AddrFrom4([4]byte{10, 0, byte(id % 2), byte(id / 2)}).String())
		b.begin(id)
	}
	b.add(1000, "10.0.7.1")
	b.begin(1000)
	served := map[int]bool{}
	for turns := 0; !served[1000]; turns++ {
		if turns > 3 {
			t.Fatalf("%d messages of two networks come before one of a third", turns)
		}
		for id, f := range b.flows {
			if f.holds && id != 1000 {
				served[b.finish(id)] = true
				break
			}
		}
		b.check()
	}
}

// A network must leave buffers for peers of other networks. While peers of the network wait, its messages that hold
// buffers must make progress or end.
func TestNetworkThreshold(t *testing.T) {
	b := newBench(t, 64)
	for id := range 200 {
		b.add(id, netip.AddrFrom4([4]byte{10, 0, 0, byte(id)}).String())
		b.begin(id)
	}
	if n := b.Held(); n != 57 {
		t.Errorf("one network holds %d of 64 buffers, want 57", n)
	}
	b.add(1000, "10.0.7.1")
	if !b.begin(1000) {
		t.Error("a peer of another network waits though buffers are free")
	}
	b.timeout = ProgressTimeout
	b.now = b.now.Add(2 * time.Hour)
	if left := b.TimeLeft(b.flows[0], 0, b.now); left > 0 {
		t.Errorf("a message that stands still while peers of its network wait has %v left", left)
	}
}

// A flow that was given a buffer does not take it. The buffer must count as held by the flow's peer. Other flows must get
// the other buffers as they come, and the first flow must get its buffer whenever it takes it. If it ends instead, its
// buffer must be free.
func TestGivenBufferNotTaken(t *testing.T) {
	for _, ends := range []bool{false, true} {
		b := newBench(t, 0)
		for id, addr := range map[int]string{1: "10.0.0.1", 2: "10.0.1.1", 3: "10.0.2.1"} {
			b.add(id, addr)
		}
		b.begin(1)
		b.begin(2)
		if b.Put(); b.Give() != 1 {
			t.Fatal("the first buffer is not given to the first flow")
		}
		if b.Put(); b.serve() != 2 {
			t.Fatal("the second buffer is not given to the second flow")
		}
		if b.Put(); !b.begin(3) {
			t.Fatal("a flow waits behind one that was given a buffer")
		}
		b.check()
		if b.Held() != 3 || b.Waiting() != 0 {
			t.Errorf("%d held, %d wait", b.Held(), b.Waiting())
		}
		if ends {
			b.Remove(b.flows[1], 0, b.now)
		} else if !b.begin(1) || b.finish(1) != 0 {
			t.Error("the first flow does not get what it was given")
		}
		if b.Free() != 1 || b.Held() != 2 {
			t.Errorf("%d free, %d held", b.Free(), b.Held())
		}
	}
}
