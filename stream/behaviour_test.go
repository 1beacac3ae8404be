package stream

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

// TestBytes: both directions at once deliver what was written, in writes and reads of every size, while rings grow.
func TestBytes(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		x, y := newPair(t, a, b)
		sums := make(chan [sha256.Size]byte, 4)
		for i, c := range []*Conn{x, y} {
			go func() {
				r := rand.New(rand.NewPCG(uint64(i), 0))
				sent := sha256.New()
				for total := 0; total < 8<<20; {
					p := make([]byte, 1+r.IntN(1<<r.IntN(20)))
					for i := range p {
						p[i] = byte(r.Uint32())
					}
					if n, err := c.Write(p); n != len(p) || err != nil {
						t.Errorf("Write: %d of %d bytes, %v", n, len(p), err)
					}
					sent.Write(p)
					total += len(p)
				}
				if err := c.CloseWrite(); err != nil {
					t.Error(err)
				}
				sums <- [sha256.Size]byte(sent.Sum(nil))
			}()
			go func() {
				received := sha256.New()
				if _, err := io.Copy(received, c); err != nil {
					t.Error(err)
				}
				sums <- [sha256.Size]byte(received.Sum(nil))
			}()
		}
		count := map[[sha256.Size]byte]int{}
		for range 4 {
			count[<-sums]++
		}
		if len(count) != 2 {
			t.Error("the received bytes differ from the sent ones")
		}
		if x.in.size() == minRing {
			t.Error("no ring has grown")
		}
	})
}

// TestHalfClose: after CloseWrite the peer reads the end, and can still write.
func TestHalfClose(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	write(t, x, "question")
	if err := x.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(y); string(got) != "question" || err != nil {
		t.Fatalf("read %q, %v", got, err)
	}
	if _, err := x.Write([]byte("more")); err == nil {
		t.Error("Write after CloseWrite succeeds")
	}
	write(t, y, "answer")
	if err := y.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(x); string(got) != "answer" || err != nil {
		t.Fatalf("read %q, %v", got, err)
	}
}

// TestCloseDelivers: the peer reads everything that was written before Close, and then the end. Its writes fail.
func TestCloseDelivers(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	want := bytes.Repeat([]byte("0123456789"), 1000)
	closed := make(chan error)
	go func() {
		_, err := x.Write(want)
		closed <- errors.Join(err, x.Close())
	}()
	got, err := io.ReadAll(y)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes of %d, %v", len(got), len(want), err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	wantError(t, syscall.EPIPE, func() error { return fill(y) })
	if _, err := x.Read(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if _, err := x.Write(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	if err := x.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

// TestAbort: with SetLinger(0), Close does not wait for a peer that does not read, and the peer's Read fails.
func TestAbort(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	write(t, x, "lost or not")
	if err := errors.Join(x.SetLinger(0), x.Close()); err != nil {
		t.Fatal(err)
	}
	wantError(t, syscall.ECONNRESET, func() error {
		_, err := io.Copy(io.Discard, y)
		return err
	})
}

// TestLinger: Close gives up when the peer takes nothing for the linger time.
func TestLinger(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, _ := newPair(t, a, b)
	_ = x.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	if err := fill(x); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	x.linger = 50 * time.Millisecond
	if err := x.Close(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
}

// TestPartialWrite: a Write that fails returns the number of bytes that it has taken.
func TestPartialWrite(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	_ = x.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	n, err := x.Write(make([]byte, 64<<20))
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("Write: %v", err)
	}
	if err := x.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- x.CloseWrite() }()
	got, err := io.Copy(io.Discard, y)
	if err != nil || int(got) != n {
		t.Errorf("read %d bytes, %v; Write returned %d", got, err, n)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestPeerGone: a peer that ends without Close is noticed by a blocked Read.
func TestPeerGone(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, _ := newPair(t, a, b)
	failed := make(chan error)
	go func() {
		_, err := x.Read(make([]byte, 1))
		failed <- err
	}()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Read: %v", err)
	}
}

// TestNothingIsLeft: streams that have come and gone leave no objects at their adapters and no memory of rings.
func TestNothingIsLeft(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	keep, _ := newPair(t, a, b)
	for range 100 {
		x, y, err := pair(a, b)
		if err != nil {
			t.Fatal(err)
		}
		write(t, x, "something")
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if err := y.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(20 * time.Second); ; runtime.Gosched() { // a Close may have left an orphan
		all, err := a.Connections()
		check(t, err)
		got := keep.stack.memory.total()
		if got == 0 && len(all) == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("rings have %d bytes too many; %d connections", got, len(all))
		}
	}
}

func write(t *testing.T, c *Conn, text string) {
	t.Helper()
	if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("Write: %d of %d bytes, %v", n, len(text), err)
	}
}

// fill writes until an error.
func fill(c *Conn) error {
	for p := make([]byte, 64<<10); ; {
		if _, err := c.Write(p); err != nil {
			return err
		}
	}
}

func wantError(t *testing.T, want error, f func() error) {
	t.Helper()
	if err := f(); !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// TestUnreadWrites: small Writes to a peer that does not read fill as much memory as a large one. So two ends that both
// write before they read do not block each other sooner.
func TestUnreadWrites(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		x, y := newPair(t, a, b)
		sent := make([]byte, maxRing)
		for i := range sent {
			sent[i] = byte(i ^ i>>8 ^ i>>16)
		}
		check(t, soon(t, "Write", func() error {
			for p := sent; len(p) > 0; p = p[min(1000, len(p)):] {
				if _, err := x.Write(p[:min(1000, len(p))]); err != nil {
					return err
				}
			}
			return x.CloseWrite()
		}))
		if got, err := io.ReadAll(y); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		check(t, errors.Join(x.Close(), y.Close()))
	})
}
