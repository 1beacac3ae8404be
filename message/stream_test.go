package message

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	"github.com/datxdp/datxdp/stream"
)

// overStream returns the two ends of a stream over loopback.
func overStream(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := stream.Listen(t.Context(), "udp:127.91.0.1", 7000)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted := make(chan error, 1)
	go func() {
		var err error
		b, err = l.Accept()
		accepted <- err
	}()
	if a, err = stream.Dial(t.Context(), "udp:127.91.0.2", "127.91.0.1:7000"); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// listenStream returns a listener of streams, and a function that connects to it.
func listenStream(t testing.TB) (net.Listener, func() net.Conn) {
	l, err := stream.Listen(t.Context(), "udp:127.91.0.5", 7000)
	return l, dialer(t, err, func() (net.Conn, error) {
		return stream.Dial(t.Context(), "udp:127.91.0.6", "127.91.0.5:7000")
	})
}

// shown is a stream that remembers the memory that Peek has shown: the peer of a stream can write into it.
type shown struct {
	*stream.Conn
	memory [][]byte
}

func (s *shown) Peek() ([]byte, error) {
	b, err := s.Conn.Peek()
	s.memory = append(s.memory, b)
	return b, err
}

// overwrite does what a hostile peer does at any time: it writes into the ring.
func (s *shown) overwrite() {
	for _, b := range s.memory {
		for i := range b {
			b[i] ^= 0xff
		}
	}
	s.memory = s.memory[:0]
}

// changed are sizes of messages: in one piece in the ring, and in several.
var changed = []int{1, 100, 1500, 1 << 12, 1 << 17}

// A peer that writes into the ring must not change a message that Recv has returned.
func TestPeerCannotChangeMessage(t *testing.T) {
	a, b := overStream(t)
	ring := &shown{Conn: b.(*stream.Conn)}
	from, to := New(a), New(ring)
	for _, size := range changed {
		want := bytes.Repeat([]byte{'x'}, size)
		sent := make(chan error)
		go func() { sent <- from.Send(context.Background(), want) }()
		got, err := to.Recv(t.Context())
		if err = errors.Join(err, <-sent); err != nil {
			t.Fatal(err)
		}
		ring.overwrite()
		if !bytes.Equal(got, want) {
			t.Errorf("a message of %d bytes has changed", size)
		}
	}
}

// A peer that writes into the ring must not change a request while the handler works with it.
func TestPeerCannotChangeRequest(t *testing.T) {
	a, b := overStream(t)
	ring := &shown{Conn: b.(*stream.Conn)}
	s := Server{Handler: func(_ context.Context, into, request []byte) ([]byte, error) {
		ring.overwrite()
		return append(into, request...), nil
	}}
	served := make(chan error)
	go func() { served <- s.ServeConn(ring) }()
	c := NewClient(a)
	for _, size := range changed {
		want := bytes.Repeat([]byte{'x'}, size)
		if got, err := c.Call(t.Context(), nil, want); err != nil || !bytes.Equal(got, want) {
			t.Errorf("a request of %d bytes has changed: %v", size, err)
		}
	}
	if err := errors.Join(c.Close(), <-served); err != nil {
		t.Error(err)
	}
}
