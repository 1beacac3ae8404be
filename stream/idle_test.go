package stream

import (
	"io"
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
				if n := c.stack.memory.Load(); n != 0 {
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
		y.tidy(true)
		x.tidy(true)
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
		c.stack.memory.Add(maxMemory)
		defer c.stack.memory.Add(-maxMemory)
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
		if c[0].out.size() != minRing || c[1].in.size() != minRing {
			t.Errorf("rings of %d and %d bytes", c[0].out.size(), c[1].in.size())
		}
	}
	for _, c := range []*Conn{x, y} {
		for c.stack.memory.Load() > maxMemory {
			runtime.Gosched()
		}
	}
}
