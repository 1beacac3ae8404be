package message

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/datxdp/datxdp/stream"
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

// echo appends the request to the response; a request that begins with "no" is refused.
func echo(into, request []byte) ([]byte, error) {
	if bytes.HasPrefix(request, []byte("no")) {
		return nil, fmt.Errorf("refused: %s\x1b", request)
	}
	return append(into, request...), nil
}

// serve starts a server with the handler over TCP, and returns a function that connects to it.
func serve(t testing.TB, h Handler) (dial func() net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, h)
	return func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func serveOn(t testing.TB, l net.Listener, h Handler) {
	served := make(chan error, 1)
	go func() { served <- Serve(l, h) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// serveStream is serve over streams.
func serveStream(t testing.TB, h Handler) (dial func() net.Conn) {
	t.Helper()
	l, err := stream.Listen(t.Context(), "udp:127.91.0.3", 7000)
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, h)
	return func() net.Conn {
		c, err := stream.Dial(t.Context(), "udp:127.91.0.4", "127.91.0.3:7000")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// Each of many outstanding requests must get its own response, or the error of the handler.
func TestCall(t *testing.T) {
	t.Run("TCP", func(t *testing.T) { testCall(t, serve(t, echo)()) })
	t.Run("stream", func(t *testing.T) { testCall(t, serveStream(t, echo)()) })
}

func testCall(t *testing.T, conn net.Conn) {
	c := NewClient(conn)
	var group sync.WaitGroup
	for g := range 32 {
		group.Go(func() {
			into := []byte("got ")
			for i := range 50 {
				ask := fmt.Appendf(nil, "%d/%d %s", g, i, strings.Repeat("x", rand.IntN(5000)))
				response, err := c.Call(t.Context(), into, ask)
				if err != nil || string(response) != "got "+string(ask) {
					t.Errorf("%.20q: %.20q, %v", ask, response, err)
					return
				}
				var remote RemoteError
				if response, err = c.Call(t.Context(), into, fmt.Appendf(nil, "no %d", g)); !errors.As(err, &remote) ||
					err.Error() != fmt.Sprintf("refused: no %d\uFFFD", g) || string(response) != "got " {
					t.Errorf("%q, %v", response, err)
				}
			}
		})
	}
	group.Wait()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Call(t.Context(), nil, nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A call whose context ends must return, and its late response must not reach another call, nor end the reading for
// the calls that wait.
func TestCallContext(t *testing.T) {
	release := make(chan struct{})
	c := NewClient(serve(t, func(into, request []byte) ([]byte, error) {
		<-release
		return append(into, request...), nil
	})())
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var late, patient sync.WaitGroup
	for range 4 {
		late.Go(func() {
			if _, err := c.Call(ctx, nil, []byte("late")); err != context.Canceled {
				t.Errorf("late: %v", err)
			}
		})
	}
	for i := range 4 {
		patient.Go(func() {
			want := fmt.Sprint("patient", i)
			if p, err := c.Call(t.Context(), nil, []byte(want)); string(p) != want || err != nil {
				t.Errorf("%q, %v, want %q", p, err, want)
			}
		})
	}
	for { // until all are outstanding
		c.mu.Lock()
		n := len(c.pending)
		c.mu.Unlock()
		if n == 8 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	late.Wait()
	close(release)
	patient.Wait()
	if len(c.pending) != 0 {
		t.Errorf("%d calls are pending", len(c.pending))
	}
}

// The end of the connection must end all calls, and the client.
func TestServerGone(t *testing.T) {
	a, b := pair(t)
	c := NewClient(a)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := c.Call(t.Context(), nil, []byte("x")); err == nil {
				t.Error("a call without a server succeeded")
			}
		})
	}
	if _, err := New(b).in.src.Peek(); err != nil { // at least one request has come
		t.Fatal(err)
	}
	b.Close()
	group.Wait()
	if _, err := c.Call(t.Context(), nil, nil); err == nil {
		t.Error("a call after the end succeeded")
	}
}

// A peer that does not keep to the protocol must cause an error, not a panic or a wait.
func TestWrongKinds(t *testing.T) {
	a, b := pair(t)
	if err := New(a).Send(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := (&Server{Handler: echo}).ServeConn(b); err == nil || !strings.Contains(err.Error(), "expects requests") {
		t.Errorf("ServeConn: %v", err)
	}
	a, b = pair(t)
	if err := New(b).Send(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(a).Call(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "expects responses") {
		t.Errorf("Call: %v", err)
	}
}

// Arbitrary bytes must not panic, and must not make the reader allocate more than twice what it received.
func FuzzReader(f *testing.F) {
	f.Add(append(header{length: 3, kind: kindRequest, id: 7}.append(nil), "abc"...), uint8(2), false)
	f.Add(header{length: 1 << 31}.append(nil), uint8(9), true)
	f.Fuzz(func(t *testing.T, in []byte, cut uint8, copies bool) {
		r := reader{src: &pieces{in: in, size: int(cut) + 1}, copies: copies, max: 1 << 10}
		var out []byte
		for {
			h, p, err := r.next()
			if err != nil {
				break
			}
			out = append(h.append(out), p...)
		}
		if !bytes.HasPrefix(in, out) {
			t.Errorf("%x became %x", in, out)
		}
	})
}

// pieces is a source that shows at most size bytes at a time.
type pieces struct {
	in   []byte
	size int
}

func (p *pieces) Peek() ([]byte, error) {
	if len(p.in) == 0 {
		return nil, io.EOF
	}
	return p.in[:min(p.size, len(p.in))], nil
}

func (p *pieces) Discard(n int) { p.in = p.in[n:] }

func BenchmarkCall(b *testing.B) {
	b.Run("TCP", func(b *testing.B) { benchCall(b, serve(b, echo)()) })
	b.Run("stream", func(b *testing.B) { benchCall(b, serveStream(b, echo)()) })
}

func benchCall(b *testing.B, conn net.Conn) {
	c := NewClient(conn)
	defer c.Close()
	ask, into := make([]byte, 64), make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Call(b.Context(), into, ask); err != nil {
			b.Fatal(err)
		}
	}
}

// ringful is a source that shows one frame for ever.
type ringful []byte

func (r ringful) Peek() ([]byte, error) { return r, nil }
func (r ringful) Discard(int)           {}

// BenchmarkReader compares frames in place with frames that are copied.
func BenchmarkReader(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64<<10 - headerSize, 1 << 20} {
		frame := append(header{length: uint32(size)}.append(nil), make([]byte, size)...)
		for _, copies := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d bytes, copies=%t", size, copies), func(b *testing.B) {
				r := reader{src: ringful(frame), copies: copies, max: size}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := r.next(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
