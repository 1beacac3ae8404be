package reassembly

import (
	"math/rand/v2"
	"testing"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

func frames(n int) []link.Buf {
	b := make([]link.Buf, n)
	for i := range b {
		b[i].Data = []byte{byte(i)}
	}
	return b
}

func TestEmpty(t *testing.T) {
	q := New(new(Pool))
	if q.At(7, 7) != nil || q.At(7, 9) != nil || q.Last(7) != 0 || len(q.RemoveAll(nil)) != 0 {
		t.Error("an empty queue holds something")
	}
	b := []byte{0xff}
	if q.PutSACK(7, b); b[0] != 0 {
		t.Errorf("the SACK block of an empty queue is %x", b)
	}
}

// A table must keep its packets when it grows, even if packet numbers wrap.
func TestGrow(t *testing.T) {
	for _, next := range []seq.Num{0, 1<<32 - 3, 1<<31 - 1} {
		q := New(new(Pool))
		for _, d := range []seq.Num{0, 1, 5, 255, 256, 1023} {
			q.Hold(next, next+d, frames(1+int(d%3)), int(d))
		}
		for _, d := range []seq.Num{0, 1, 5, 255, 256, 1023} {
			p := q.At(next, next+d)
			if p == nil || p.End != int(d) || len(p.Bufs) != 1+int(d%3) {
				t.Errorf("packet %d + %d is %v", next, d, p)
			}
		}
		if q.Packets() != 6 || q.Last(next) != 1023 {
			t.Errorf("%d packets, the last is %d packets early; want 6 and 1023", q.Packets(), q.Last(next))
		}
	}
}

func TestSACK(t *testing.T) {
	q := New(new(Pool))
	for _, d := range []seq.Num{0, 1, 3, 9, 40} { // three bytes have no bit for 40, and 0 never has a bit
		q.Hold(100, 100+d, frames(1), 0)
	}
	b := make([]byte, 3)
	if q.PutSACK(100, b); b[0] != 0b101 || b[1] != 1 || b[2] != 0 {
		t.Errorf("got %08b", b)
	}
}

// The queue must agree with a map of packets after any Hold and Remove. No frame may be lost or returned twice.
func TestModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := model{t: t, seed: seed, q: New(new(Pool)), next: seq.Num(r.Uint32()), want: map[seq.Num]int{}}
		for range 300 {
			switch r.IntN(4) {
			case 0:
				m.take(m.next)
				m.next++
			case 1:
				m.take(m.next + seq.Num(m.q.Last(m.next)))
			default:
				m.hold(m.next+seq.Num(r.IntN(1024)), 1+r.IntN(4))
			}
			m.check()
		}
		if n := len(m.q.RemoveAll(nil)); n != m.frames || m.q.Packets() != 0 || m.q.Frames() != 0 {
			t.Fatalf("seed %d: %d frames came back of %d", seed, n, m.frames)
		}
	}
}

// A queue must return its table when it becomes empty, whatever its size, and the pool must keep few tables.
func TestTablesReturn(t *testing.T) {
	for _, removeAll := range []bool{false, true} {
		var p Pool
		queues := make([]Queue, 2*PoolSize)
		for i := range queues {
			queues[i] = New(&p)
			queues[i].Hold(0, 1023, frames(1), 0)
		}
		for i := range queues {
			if q := &queues[i]; removeAll {
				q.RemoveAll(nil)
			} else {
				q.Remove(q.At(0, 1023), nil)
			}
			if queues[i].slots != nil || p.Len() > PoolSize {
				t.Fatalf("an empty queue has a table of %d slots, the pool has %d tables", len(queues[i].slots), p.Len())
			}
		}
		if p.Len() != PoolSize {
			t.Errorf("the pool has %d tables, want %d", p.Len(), PoolSize)
		}
	}
}

// A connection that loses packets now and then must not allocate at each loss, even if the window exceeds a new table.
func TestLossesAllocateNothing(t *testing.T) {
	var p Pool
	a, b := New(&p), New(&p)
	bufs, drop := frames(2), make([]link.Buf, 0, 4)
	psn := seq.Num(0)
	loss := func() {
		for _, q := range []*Queue{&a, &b} {
			q.Hold(psn, psn+1, bufs, 0)
			q.Hold(psn, psn+2*InitialSlots, bufs, 0)
			q.Remove(q.At(psn, psn+1), drop)
			q.Remove(q.At(psn+2, psn+2*InitialSlots), drop)
		}
		psn++
	}
	for range 4 * InitialSlots { // so that each slot has its memory
		loss()
	}
	if n := testing.AllocsPerRun(100, loss); n != 0 {
		t.Errorf("%v allocations at a loss", n)
	}
}

type model struct {
	t      *testing.T
	seed   uint64
	q      Queue
	next   seq.Num
	want   map[seq.Num]int // number of frames of each packet
	frames int
}

func (m *model) hold(psn seq.Num, n int) {
	if m.q.At(m.next, psn) != nil {
		return
	}
	m.q.Hold(m.next, psn, frames(n), n)
	m.want[psn] = n
	m.frames += n
}

func (m *model) take(psn seq.Num) {
	if p := m.q.At(m.next, psn); p != nil {
		m.frames -= len(m.q.Remove(p, nil))
		delete(m.want, psn)
	}
}

func (m *model) check() {
	last := 0
	for psn, n := range m.want {
		last = max(last, psn.Sub(m.next))
		if p := m.q.At(m.next, psn); p == nil || p.End != n {
			m.t.Fatalf("seed %d: packet %d is %v, want one of %d frames", m.seed, psn, p, n)
		}
	}
	if (len(m.q.slots) > 0) != (len(m.want) > 0) {
		m.t.Fatalf("seed %d: a table of %d slots for %d packets", m.seed, len(m.q.slots), len(m.want))
	}
	if m.q.Packets() != len(m.want) || m.q.Frames() != m.frames || m.q.Last(m.next) != last {
		m.t.Fatalf("seed %d: %d packets of %d frames, the last %d early; want %d, %d, %d",
			m.seed, m.q.Packets(), m.q.Frames(), m.q.Last(m.next), len(m.want), m.frames, last)
	}
}
