package transport

import (
	"io"
	"net"
	"sync"

	"github.com/datxdp/datxdp/stream"
)

// listener is a listener whose streams close in the background.
type listener struct{ *stream.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) { return inBackground(l.Listener.Accept()) }

// conn is a stream that closes in the background. The peer can delay Close by 5 s, and servers such as net/http close
// their connections one after the other.
type conn struct{ *stream.Conn }

func inBackground(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return conn{c.(*stream.Conn)}, nil
}

// Close implements net.Conn. It does not wait until the stream is closed; Run does.
func (c conn) Close() error {
	closing.start(c.Conn)
	return nil
}

// closing has the streams that are being closed.
var closing closings

// closings closes connections at the same time, each in a goroutine of its own.
type closings struct {
	mu   sync.Mutex
	open int           // number of connections that are not closed yet
	none chan struct{} // closed when open is 0; nil if nothing waits
}

func (s *closings) start(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	go func() {
		_ = c.Close() // the caller does not wait for the result
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open--; s.open == 0 && s.none != nil {
			close(s.none)
			s.none = nil
		}
	}()
}

// wait waits until all connections are closed. One goroutine at a time may call it.
func (s *closings) wait() {
	s.mu.Lock()
	none := make(chan struct{})
	if s.open > 0 {
		s.none = none
	} else {
		close(none)
	}
	s.mu.Unlock()
	<-none
}
