package stream

import (
	"io"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

// grow sends so many bytes in both directions that all rings grow.
func grow(t *testing.T, x, y *Conn) {
	t.Helper()
	const size = 1 << 20
	done := make(chan error, 2)
	for _, c := range []*Conn{x, y} {
		go func() {
			_, err := c.Write(make([]byte, size))
			done <- err
		}()
	}
	go func() {
		_, err := io.CopyN(io.Discard, y, size)
		done <- err
	}()
	if _, err := io.CopyN(io.Discard, x, size); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// tidyAll looks at the streams of both stacks until none has rings that an idle stream does not have.
func tidyAll(x, y *Conn) {
	for left := 1; left > 0; {
		left = 0
		for _, s := range []*stack{x.stack, y.stack} {
			s.tidy()
			left += len(s.appendTo(nil, s.untidy))
		}
	}
}

// TestShrink: the rings of an idle stream go back to the first size, and grow again when they are used.
func TestShrink(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		x, y := newPair(t, a, b)
		for range 3 {
			grow(t, x, y)
			if x.in.size() == minRing || y.in.size() == minRing {
				t.Error("a receive ring has not grown")
			}
			tidyAll(x, y)
			for _, c := range []*Conn{x, y} {
				if c.in.size() != minRing || c.out.size() != 0 || c.in.growing() {
					t.Errorf("rings of %d and %d bytes", c.in.size(), c.out.size())
				}
				if n := c.stack.memory.total(); n != 0 {
					t.Errorf("rings have %d bytes too many", n)
				}
			}
		}
	})
}

// TestShrinkKeepsBytes: bytes that wait to be read keep their ring, and shrinking while they arrive loses none.
func TestShrinkKeepsBytes(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	const size = 8 << 20
	done := make(chan error)
	go func() {
		_, err := x.ReadFrom(io.LimitReader(&counting{}, size))
		done <- err
	}()
	want := &counting{}
	p, q := make([]byte, 10_000), make([]byte, 10_000)
	for total := 0; total < size; {
		n, err := y.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = want.Read(q[:n])
		if string(p[:n]) != string(q[:n]) {
			t.Fatalf("bytes differ behind %d", total)
		}
		total += n
		for _, c := range []*Conn{y, x} {
			c.mu.Lock()
			c.used = false
			c.mu.Unlock()
			c.tidy(false)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// counting is a reader of bytes that count.
type counting struct{ next byte }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.next
		c.next += 3
	}
	return len(p), nil
}

// TestMemoryShort: when the rings of an adapter have reached their limit, a stream works with its first rings, and
// streams whose rings are empty give them back at once.
func TestMemoryShort(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	v, w := newPair(t, a, b)
	for _, c := range []*Conn{x, y} {
		c.stack.interval = time.Hour
	}
	grow(t, x, y)
	for _, c := range []*Conn{x, y} {
		c.stack.memory.give(c.peer(), -maxMemory)
		defer c.stack.memory.give(c.peer(), maxMemory)
		go func() { _, _ = io.Copy(io.Discard, c) }() // handles the events of the stream
	}
	const size = 64 << 10
	for _, c := range [][2]*Conn{{v, w}, {w, v}} {
		done := make(chan error)
		go func() {
			_, err := c[0].Write(make([]byte, size))
			done <- err
		}()
		if n, err := io.CopyN(io.Discard, c[1], size); err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for _, c := range c { // the stack may have shrunk their rings already
			c.mu.Lock()
			out, in := c.out.size(), c.in.size()
			c.mu.Unlock()
			if max(out, in) > minRing {
				t.Errorf("rings of %d and %d bytes", out, in)
			}
		}
	}
	for _, c := range []*Conn{x, y} {
		for c.stack.memory.total() > maxMemory {
			runtime.Gosched()
		}
	}
}

// total returns the bytes by which all rings have grown.
func (q *quota) total() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// TestOneLook: while the stack looks at idle streams, a ring that cannot grow starts no second look beside the first.
func TestOneLook(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	s := y.stack
	s.interval = time.Hour
	grow(t, x, y)
	y.mu.Lock() // so the look does not end
	looked := make(chan struct{})
	go func() {
		s.tidy()
		close(looked)
	}()
	pending := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.timer.Stop()
	}
	for looking := false; !looking; runtime.Gosched() {
		s.mu.Lock()
		looking = s.looking
		s.mu.Unlock()
	}
	pending() // keepTidy has started the timer
	if s.hurry(); pending() {
		t.Error("a second look was to begin")
	}
	y.mu.Unlock()
	<-looked
	if !pending() {
		t.Error("no look follows")
	}
}

// TestMemoryShares: an address, or a network, that grows rings as far as it can leaves memory for others, and does not
// make them give theirs back.
func TestMemoryShares(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts int
		most  int
	}{
		{"an address", 1, maxMemory / 5},
		{"a network", 200, maxMemory / 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := sim(t, simlink.Config{})
			x, y := newPair(t, a, b)
			s := y.stack
			s.interval = time.Hour
			hogs := map[netip.Addr]int{}
			for host := range c.hosts {
				hog := netip.AddrFrom4([4]byte{192, 0, 2, byte(host)})
				for s.memory.take(hog, maxRing-minRing) {
					hogs[hog] += maxRing - minRing
				}
			}
			if n := s.memory.total(); n > c.most || n < c.most/10*9 {
				t.Errorf("it grows by %d bytes; want about %d", n, c.most)
			}
			grow(t, x, y)
			size := y.in.size()
			s.hurry()
			s.tidy()
			if y.in.size() != size || size == minRing {
				t.Errorf("the receive ring of another network has %d bytes, then %d", size, y.in.size())
			}
			for hog, n := range hogs {
				s.memory.give(hog, n)
			}
		})
	}
}

// If 16 networks, such as those of an IPv6 /60, take as much ring memory as they can, an address of another network finds
// enough for the first growths of its rings.
func TestMemoryForNewcomer(t *testing.T) {
	m := memoryQuota()
	for n := range 16 {
		for host := range 100 {
			for m.take(netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 7: byte(n), 15: byte(host)}), minRing) {
			}
		}
	}
	if !m.take(netip.MustParseAddr("192.0.2.1"), 8*minRing) {
		t.Errorf("%d bytes are left", maxMemory-m.total())
	}
}
