package message

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// pair returns the two ends of a TCP connection on loopback.
func pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// bytewise is a net.Conn whose Read returns one byte at a time.
type bytewise struct {
	net.Conn
	r io.Reader
}

func (b bytewise) Read(p []byte) (int, error) { return b.r.Read(p) }

// Messages of all sizes must arrive whole and in order, however the stream is cut.
func TestBoundaries(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cut   func(net.Conn) net.Conn
		sizes []int
	}{
		{"whole", func(c net.Conn) net.Conn { return c }, []int{0, 1, 7, 8, 9, 4088, 4096, 65527, 65528, 65536, 1 << 20, 5, 0, 3 << 20, 1}},
		{"bytes", func(c net.Conn) net.Conn { return bytewise{c, iotest.OneByteReader(c)} }, []int{0, 1, 7, 8, 9, 4096, 70000, 0, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := pair(t)
			from, to := New(a), New(tc.cut(b))
			var sent sync.WaitGroup
			sent.Go(func() {
				for i, n := range tc.sizes {
					if err := from.Send(t.Context(), bytes.Repeat([]byte{byte(i)}, n)); err != nil {
						t.Error(err)
					}
				}
				a.Close()
			})
			for i, n := range tc.sizes {
				p, err := to.Recv(t.Context())
				if err != nil || len(p) != n || bytes.Count(p, []byte{byte(i)}) != n {
					t.Fatalf("message %d: %d bytes of %d, %v", i, len(p), n, err)
				}
			}
			if _, err := to.Recv(t.Context()); err != io.EOF {
				t.Errorf("after the last message: %v", err)
			}
			sent.Wait()
		})
	}
}

// A message that the peer cuts off must be an error, not a short message.
func TestCutOff(t *testing.T) {
	a, b := pair(t)
	if _, err := a.Write(append(header{length: 10}.append(nil), "short"...)); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if p, err := New(b).Recv(t.Context()); err != io.ErrUnexpectedEOF {
		t.Errorf("%q, %v", p, err)
	}
}

// Messages above the limit must be refused on both sides, before memory is allocated for them.
func TestMaxSize(t *testing.T) {
	a, b := pair(t)
	from, to := New(a), New(b)
	from.SetMaxSize(100)
	to.SetMaxSize(10)
	if err := from.Send(t.Context(), make([]byte, 101)); err == nil || !strings.Contains(err.Error(), "limit of 100") {
		t.Errorf("Send: %v", err)
	}
	if err := from.Send(t.Context(), make([]byte, 11)); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Recv(t.Context()); err == nil || !strings.Contains(err.Error(), "limit of 10 ") {
		t.Errorf("Recv: %v", err)
	}
	if err := from.Send(t.Context(), []byte("next")); err != nil {
		t.Fatal(err)
	}
	if p, err := to.Recv(t.Context()); string(p) != "next" || err != nil {
		t.Errorf("Recv of the message after one that was too large: %q, %v", p, err)
	}
}

// A context must end a blocked Recv, which loses nothing; the next call has a context of its own.
func TestRecvContext(t *testing.T) {
	a, b := pair(t)
	from, to := New(a), New(b)
	if _, err := a.Write(header{length: 5}.append(nil)); err != nil { // the message comes in two parts
		t.Fatal(err)
	}
	for range 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		timer := time.AfterFunc(time.Millisecond, func() { cancel(nil) })
		if _, err := to.Recv(ctx); err != context.Canceled {
			t.Fatalf("%v", err)
		}
		timer.Stop()
		if _, err := to.Recv(ctx); err != context.Canceled {
			t.Fatalf("with an ended context: %v", err)
		}
	}
	if _, err := a.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := from.Send(t.Context(), []byte("world")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hello", "world"} {
		if p, err := to.Recv(t.Context()); string(p) != want || err != nil {
			t.Errorf("%q, %v, want %q", p, err, want)
		}
	}
}

// A Send that is cut off must fail, and so must all later ones, because the stream has half a message.
func TestSendContext(t *testing.T) {
	a, b := pair(t)
	from := New(a)
	from.SetMaxSize(64 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = b.Read(make([]byte, 1)) // the first byte has left
		cancel()
	}()
	if err := from.Send(ctx, make([]byte, 64<<20)); !errors.Is(err, context.Canceled) { // more than the buffers hold
		t.Fatal(err)
	}
	if err := from.Send(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("after a message that was cut off: %v", err)
	}
}
