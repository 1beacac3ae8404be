package message

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// answer is a frame that a hostile server sends.
func answer(k kind, id uint32, text string) []byte {
	return append(header{length: uint32(len(text)), kind: k, id: id}.append(nil), text...)
}

// wild is a server that answers each request with the frames of a function.
func wild(t *testing.T, answers func(id uint32, request []byte) []byte) *Client {
	a, b := pair(t)
	var served sync.WaitGroup
	served.Go(func() {
		m := New(b)
		for {
			h, p, err := m.read(context.Background())
			if err != nil {
				return
			}
			if _, err := b.Write(answers(h.id, p)); err != nil {
				return
			}
		}
	})
	c := NewClient(a)
	t.Cleanup(func() {
		c.Close()
		b.Close()
		served.Wait()
	})
	return c
}

// A server that answers twice, or with numbers of no request, must not disturb a call.
func TestUnknownAnswers(t *testing.T) {
	c := wild(t, func(id uint32, p []byte) []byte {
		return bytes.Join([][]byte{
			answer(kindResponse, id+1, "of the next request"), // no request has this number yet
			answer(kindError, id-1, "of the last request"),
			answer(kindResponse, id^1<<29, "of nobody"),
			answer(kindResponse, id, string(p)),
			answer(kindResponse, id, "a second response"),
			answer(kindError, id, "and an error"),
		}, nil)
	})
	for i := range 100 {
		want := fmt.Sprint("request ", i)
		p, err := c.Call(t.Context(), nil, []byte(want))
		if string(p) != want || err != nil {
			t.Fatalf("%q, %v, want %q", p, err, want)
		}
	}
	if len(c.pending) != 0 {
		t.Errorf("%d calls are pending", len(c.pending))
	}
}

// A client of a server that violates the protocol must return the right error from all outstanding and later calls.
func TestWrongAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		answer []byte
		end    bool
		want   string
	}{
		"message":     {answer(kindMessage, 1, "x"), false, "expects responses"},
		"request":     {answer(kindRequest, 1, "x"), false, "expects responses"},
		"long":        {header{length: math.MaxUint32, kind: kindResponse, id: 1}.append(nil), false, "more than the limit"},
		"cut payload": {answer(kindResponse, 1, "long")[:headerSize+2], true, io.ErrUnexpectedEOF.Error()},
		"cut header":  {answer(kindResponse, 1, "")[:3], true, io.ErrUnexpectedEOF.Error()},
		"end":         {nil, true, io.ErrUnexpectedEOF.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			c := NewClient(a)
			var calls sync.WaitGroup
			for range 4 {
				calls.Go(func() {
					if _, err := c.Call(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
						t.Errorf("%v, want %q", err, tc.want)
					}
				})
			}
			if _, err := io.ReadFull(b, make([]byte, 4*headerSize)); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Write(tc.answer); err != nil {
				t.Fatal(err)
			}
			if tc.end {
				b.Close()
			}
			calls.Wait()
			if _, err := c.Call(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("later call: %v, want %q", err, tc.want)
			}
			if len(c.pending) != 0 {
				t.Errorf("%d calls are pending", len(c.pending))
			}
		})
	}
}

// The numbers of requests wrap around, and skip those of outstanding requests.
func TestNumbersWrapAround(t *testing.T) {
	c := wild(t, func(id uint32, p []byte) []byte { return answer(kindResponse, id, string(p)) })
	old := &call{done: make(chan struct{}, 1)}
	c.last = idMask - 1
	c.pending[0], c.pending[1] = old, old
	for _, want := range []uint32{idMask, 2, 3} {
		if _, err := c.Call(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		if c.last != want {
			t.Errorf("request %d, want %d", c.last, want)
		}
	}
	if len(c.pending) != 2 || len(old.done) != 0 {
		t.Error("an outstanding request was answered by that of another")
	}
}

// Calls whose contexts end at any moment must not get the response of another call, though they share pooled memory.
// Late responses are dropped.
func TestCancelledCalls(t *testing.T) {
	c := NewClient(serve(t, func(_ context.Context, into, request []byte) ([]byte, error) {
		if request[0] == 'e' {
			return nil, errors.New(string(request))
		}
		return append(into, request...), nil
	})())
	defer c.Close()
	var calls sync.WaitGroup
	for g := range 8 {
		calls.Go(func() {
			for i := range 500 {
				want := fmt.Sprintf("%c %d/%d", "er"[i%2], g, i)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200))*time.Microsecond)
				p, err := c.Call(ctx, nil, []byte(want))
				cancel()
				var remote RemoteError
				switch {
				case err == nil && string(p) == want:
				case errors.As(err, &remote) && string(remote) == want:
				case errors.Is(err, context.DeadlineExceeded) && len(p) == 0:
				default:
					t.Errorf("%q: %q, %v", want, p, err)
				}
			}
		})
	}
	calls.Wait()
	if p, err := c.Call(t.Context(), nil, []byte("last")); string(p) != "last" || err != nil {
		t.Errorf("%q, %v", p, err)
	}
	if len(c.pending) != 0 {
		t.Errorf("%d calls are pending", len(c.pending))
	}
}

// A server must survive clients that send anything, and go on serving others.
func TestHostileClients(t *testing.T) {
	dial := serve(t, echo)
	for _, b := range [][]byte{
		nil,
		{1},
		answer(kindMessage, 0, "x"),
		answer(kindResponse, 0, "x"),
		answer(kindError, 0, "x"),
		header{length: math.MaxUint32, kind: kindRequest}.append(nil),
		header{length: 100, kind: kindRequest}.append(nil),
		bytes.Repeat([]byte{0xff}, 100),
	} {
		c := dial()
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Errorf("%x was answered with %x", b, got)
		}
		c.Close()
	}
	c := NewClient(dial())
	defer c.Close()
	if p, err := c.Call(t.Context(), nil, []byte("x")); string(p) != "x" || err != nil {
		t.Errorf("%q, %v", p, err)
	}
}

// scarce is a listener whose first calls of Accept fail.
type scarce struct {
	net.Listener
	errs []error
}

func (s *scarce) Accept() (net.Conn, error) {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	return s.Listener.Accept()
}

// Clients that use up the descriptors must not end the server. Any other error of Accept must end it.
func TestServeWithoutDescriptors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, &scarce{l, []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ECONNABORTED}}, echo)
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(a)
	defer c.Close()
	if p, err := c.Call(t.Context(), nil, []byte("x")); string(p) != "x" || err != nil {
		t.Errorf("%q, %v", p, err)
	}
	if err := Serve(&scarce{l, []error{syscall.EINVAL}}, echo); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("Serve: %v", err)
	}
}

// lingering is a connection whose Close waits until the other connections are closed too, like that of a stream whose
// peer acknowledges nothing.
type lingering struct {
	net.Conn
	once sync.Once
	all  *sync.WaitGroup // those whose Close was not called
}

func (l *lingering) Close() error {
	l.once.Do(l.all.Done)
	l.all.Wait()
	return l.Conn.Close()
}

// Connections whose Close lasts must not delay one another when a server ends.
func TestServeClosesAtTheSameTime(t *testing.T) {
	const n = 5
	var all sync.WaitGroup
	all.Add(n)
	open := connections{all: make(map[net.Conn]struct{})}
	s := Server{Handler: echo}
	for range n {
		_, b := pair(t)
		open.start(&lingering{Conn: b, all: &all}, s.ServeConn)
	}
	hang := time.AfterFunc(30*time.Second, func() { panic("one Close waits for the next") })
	defer hang.Stop()
	open.close()
}
