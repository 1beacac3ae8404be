package message

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// service is a server, and what a test needs to know of it.
type service struct {
	Server
	listener net.Listener
	dial     func() net.Conn
	began    chan context.Context // the context of each request
	release  chan struct{}        // closed to let the handler answer
	served   chan error
}

// transports are the listeners of the tests.
var transports = map[string]func(testing.TB) (net.Listener, func() net.Conn){
	"TCP": func(t testing.TB) (net.Listener, func() net.Conn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		return l, dialer(t, err, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	},
	"stream": listenStream,
}

func dialer(t testing.TB, err error, dial func() (net.Conn, error)) func() net.Conn {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return func() net.Conn {
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// eachTransport runs a test with a server whose handler waits for release.
func eachTransport(t *testing.T, f func(*testing.T, *service)) {
	eachServer(t, func(*service) {}, f)
}

// eachServer is eachTransport with a server that configure changes before it serves.
func eachServer(t *testing.T, configure func(*service), f func(*testing.T, *service)) {
	for name, listen := range transports {
		t.Run(name, func(t *testing.T) {
			s := &service{began: make(chan context.Context, 100), release: make(chan struct{}), served: make(chan error, 1)}
			s.Handler = func(ctx context.Context, into, request []byte) ([]byte, error) {
				s.began <- ctx
				<-s.release
				return append(into, request...), nil
			}
			configure(s)
			s.listener, s.dial = listen(t)
			go func() { s.served <- s.Serve(s.listener) }()
			f(t, s)
			if err := errors.Join(s.Close(), s.Close()); err != nil {
				t.Error(err)
			}
			if err := <-s.served; err != ErrServerClosed {
				t.Errorf("Serve: %v", err)
			}
			if err := s.Serve(s.listener); err != ErrServerClosed {
				t.Errorf("Serve of a closed server: %v", err)
			}
		})
	}
}

// TestShutdown: requests that were sent are answered, idle connections end, and new ones are refused.
func TestShutdown(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *service) {
		busy, idle := NewClient(s.dial()), NewClient(s.dial())
		defer busy.Close()
		defer idle.Close()
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				if p, err := busy.Call(t.Context(), nil, []byte("asked")); string(p) != "asked" || err != nil {
					t.Errorf("%q, %v", p, err)
				}
			})
		}
		<-s.began
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := s.Shutdown(short); err != context.DeadlineExceeded {
			t.Errorf("beside a request: %v", err)
		}
		close(s.release)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		calls.Wait()
		for _, c := range []*Client{busy, idle} {
			if _, err := c.Call(t.Context(), nil, nil); err == nil {
				t.Error("a call succeeds after Shutdown")
			}
		}
	})
}

// TestShutdownInRequest: a request that is arriving when Shutdown is called is answered.
func TestShutdownInRequest(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *service) {
		close(s.release)
		c := s.dial()
		defer c.Close()
		const size = 100
		request := append(header{kind: kindRequest, length: size}.append(nil), make([]byte, size)...)
		two := slices.Concat(request, request)
		if _, err := c.Write(two[:len(two)-1]); err != nil {
			t.Fatal(err)
		}
		<-s.began
		short, cancel := context.WithTimeout(t.Context(), 5*shutdownPause)
		defer cancel()
		if err := s.Shutdown(short); err != context.DeadlineExceeded {
			t.Errorf("beside an incomplete request: %v", err)
		}
		if _, err := c.Write(two[len(two)-1:]); err != nil {
			t.Fatal(err)
		}
		if answers, err := io.ReadAll(c); len(answers) != len(two) || err != nil {
			t.Errorf("%d bytes of %d, %v", len(answers), len(two), err)
		}
	})
}

// TestShutdownOfBusyClient: a client that never pauses does not keep Shutdown.
func TestShutdownOfBusyClient(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *service) {
		close(s.release)
		c := NewClient(s.dial())
		defer c.Close()
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				for c.Err() == nil {
					_, _ = c.Call(t.Context(), nil, nil)
				}
			})
		}
		go func() {
			for range s.began {
			}
		}()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		calls.Wait()
		close(s.began)
	})
}

// TestRequestContext: the context of a request knows the peer, and ends when the client is gone or the server is closed.
func TestRequestContext(t *testing.T) {
	for cause, end := range map[string]func(*service, *Client){
		"client": func(_ *service, c *Client) { _ = c.Close() },
		"server": func(s *service, _ *Client) { _ = s.Close() },
	} {
		t.Run(cause, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, s *service) {
				conn := s.dial()
				c := NewClient(conn)
				var call sync.WaitGroup
				call.Go(func() { _, _ = c.Call(t.Context(), nil, []byte("x")) })
				ctx := <-s.began
				if p, ok := PeerOf(ctx); !ok || p.Addr.String() != conn.LocalAddr().String() || p.Key != [32]byte{} {
					t.Errorf("the peer is %+v", p)
				}
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				if err := ctx.Err(); err != nil {
					t.Errorf("before the end: %v", err)
				}
				end(s, c)
				<-child.Done()
				if err := context.Cause(ctx); err == nil || cause == "server" && err != ErrServerClosed {
					t.Errorf("the cause is %v", err)
				}
				close(s.release)
				_ = c.Close()
				call.Wait()
			})
		})
	}
	if _, ok := PeerOf(t.Context()); ok {
		t.Error("a context without a request has a peer")
	}
}

// TestWatchKeepsRequests: a handler that uses its context loses none of the requests that arrive meanwhile.
func TestWatchKeepsRequests(t *testing.T) {
	handler := func(ctx context.Context, into, request []byte) ([]byte, error) {
		return append(into, request...), ctx.Err()
	}
	t.Run("TCP", func(t *testing.T) { testCall(t, serve(t, refusing(handler))()) })
	t.Run("stream", func(t *testing.T) { testCall(t, serveStream(t, refusing(handler))()) })
}

// refusing is echo with another handler for the requests that it answers.
func refusing(h Handler) Handler {
	return func(ctx context.Context, into, request []byte) ([]byte, error) {
		if _, err := echo(ctx, into, request); err != nil {
			return nil, err
		}
		return h(ctx, into, request)
	}
}
