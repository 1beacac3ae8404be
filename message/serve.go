package message

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
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

// Serve accepts connections from l and answers their requests, each connection in a goroutine of its own. If Accept fails
// for lack of descriptors or memory, Serve tries again after a while. If Accept fails otherwise, for example because l is
// closed, Serve closes all connections at the same time, waits for their goroutines, and returns the error of Accept, or
// nil if it is net.ErrClosed.
//
// Serve does not bound the number of connections, nor the time of an idle one: to do so, wrap the listener.
func (s *Server) Serve(l net.Listener) error {
	open := connections{all: make(map[net.Conn]struct{})}
	defer open.close()
	for {
		c, err := accept(l)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		open.start(c, s.ServeConn)
	}
}

// connections are those of a Serve.
type connections struct {
	mu    sync.Mutex
	all   map[net.Conn]struct{} // guarded by mu
	group sync.WaitGroup        // of their goroutines
}

// start serves a connection.
func (o *connections) start(c net.Conn, serve func(net.Conn) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[c] = struct{}{}
	o.group.Go(func() {
		_ = serve(c) // the client sees why
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.all, c)
	})
}

// close closes all connections at the same time, because the peer of a stream can delay its Close, and waits for their
// goroutines.
func (o *connections) close() {
	o.mu.Lock()
	for c := range o.all {
		o.group.Go(func() { _ = c.Close() })
	}
	o.mu.Unlock()
	o.group.Wait()
}

// minPause is the pause after the first Accept that fails for lack of descriptors or memory. It doubles up to maxPause.
const (
	minPause = 5 * time.Millisecond
	maxPause = time.Second
)

// accept accepts a connection. It waits while there are too few descriptors or too little memory: idle connections of
// one client can cause that, and must not end the service for all others.
func accept(l net.Listener) (net.Conn, error) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		c, err := l.Accept()
		if !slices.ContainsFunc(shortages, func(short error) bool { return errors.Is(err, short) }) {
			return c, err
		}
		time.Sleep(pause)
	}
}

// shortages are errors of an Accept that may succeed later.
var shortages = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}

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
			reply.kind, out = kindError, append(out[:0], err.Error()[:min(len(err.Error()), maxErrorText)]...)
		}
		if err := m.write(context.Background(), reply, out); err != nil {
			return err
		}
		if cap(out) > bufferSize {
			out = nil // do not keep the memory of a rare large response
		}
	}
}
