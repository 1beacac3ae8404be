package message

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// Handler answers a request. It appends the response to the slice into and returns the result. The slices into and
// request belong to it until it returns. If it returns an error, the client's Call returns the error's text as a
// RemoteError. Requests of one connection are handled one after another, those of several connections at the same time.
type Handler func(into, request []byte) ([]byte, error)

// Server answers requests.
type Server struct {
	Handler Handler
	MaxSize int // size of the largest request and response in bytes; 0 means DefaultMaxSize
}

// Serve accepts connections from l and answers their requests with h, as Server.Serve does.
func Serve(l net.Listener, h Handler) error {
	s := Server{Handler: h}
	return s.Serve(l)
}

// Serve accepts connections from l and answers their requests, each connection in a goroutine of its own. When Accept
// fails, for example because l is closed, Serve closes all connections, waits for their goroutines, and returns the
// error of Accept, or nil if it is net.ErrClosed.
func (s *Server) Serve(l net.Listener) error {
	var (
		mu    sync.Mutex
		conns = make(map[net.Conn]struct{})
		group sync.WaitGroup
	)
	for {
		c, err := l.Accept()
		if err != nil {
			mu.Lock()
			for c := range conns {
				_ = c.Close()
			}
			mu.Unlock()
			group.Wait()
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		mu.Lock()
		conns[c] = struct{}{}
		mu.Unlock()
		group.Go(func() {
			_ = s.ServeConn(c) // the client sees why
			mu.Lock()
			delete(conns, c)
			mu.Unlock()
		})
	}
}

// ServeConn answers the requests of a connection until the client closes it, and closes it too. It returns nil if the
// client has closed it between two requests.
func (s *Server) ServeConn(c net.Conn) error {
	m := New(c)
	defer m.Close()
	if s.MaxSize > 0 {
		m.SetMaxSize(s.MaxSize)
	}
	var out []byte
	for {
		ask, p, err := m.read(context.Background())
		switch {
		case err == io.EOF:
			return nil
		case err == nil && ask.kind != kindRequest:
			err = errors.New("message: the peer has sent a message to a Server: it expects requests of Call")
		}
		if err != nil {
			return err
		}
		reply := header{kind: kindResponse, id: ask.id}
		if out, err = s.Handler(out[:0], p); err != nil {
			reply.kind, out = kindError, append(out[:0], err.Error()...)
		}
		if err := m.write(context.Background(), reply, out); err != nil {
			return err
		}
		if cap(out) > bufferSize {
			out = nil // do not keep the memory of a rare large response
		}
	}
}
