package message

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datxdp/datxdp/stream"
)

// echo appends the request to the response; a request that begins with "no" is refused.
func echo(_ context.Context, into, request []byte) ([]byte, error) {
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
	c := NewClient(serve(t, func(_ context.Context, into, request []byte) ([]byte, error) {
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
	awaitPending(t, c, 8)
	cancel()
	late.Wait()
	close(release)
	patient.Wait()
	awaitPending(t, c, 0)
}

// awaitPending waits until n calls are outstanding.
func awaitPending(t *testing.T, c *Client, n int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		got := len(c.pending)
		c.mu.Unlock()
		if got == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d calls are pending, want %d", got, n)
		}
	}
}

// A response whose call has given up must not keep the peer from reading the next request, even if both are larger than
// what the connection stores.
func TestCallAfterUnreadResponse(t *testing.T) {
	for name, serve := range map[string]func(testing.TB, Handler) func() net.Conn{"TCP": serve, "stream": serveStream} {
		t.Run(name, func(t *testing.T) {
			large := make([]byte, 15<<20)
			release := make(chan struct{})
			c := NewClient(serve(t, func(_ context.Context, into, request []byte) ([]byte, error) {
				<-release
				return append(into, large...), nil
			})())
			ctx, cancel := context.WithCancel(t.Context())
			var late sync.WaitGroup
			late.Go(func() {
				if _, err := c.Call(ctx, nil, []byte("x")); err != context.Canceled {
					t.Error(err)
				}
			})
			for len(c.reading) == 0 { // until the request is sent
				time.Sleep(time.Millisecond)
			}
			cancel()
			late.Wait()
			close(release)
			patient, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for range 2 {
				if p, err := c.Call(patient, nil, large); len(p) != len(large) || err != nil {
					t.Fatalf("%d bytes, %v", len(p), err)
				}
			}
			c.mu.Lock()
			if c.unwanted != 0 {
				t.Errorf("%d responses are outstanding", c.unwanted)
			}
			c.mu.Unlock()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
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

// The text of an error is kept up to a limit, at both ends.
func TestLongErrorText(t *testing.T) {
	c := NewClient(serve(t, func(_ context.Context, _, _ []byte) ([]byte, error) {
		return nil, errors.New(strings.Repeat("e", 1<<20))
	})())
	defer c.Close()
	var remote RemoteError
	if _, err := c.Call(t.Context(), nil, nil); !errors.As(err, &remote) || len(remote) != maxErrorText {
		t.Errorf("%d bytes of text, %.20q", len(remote), err)
	}
}
