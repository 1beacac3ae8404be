package message

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Handler answers a request. It appends the response to the slice into and returns the result. The slices into and
// request belong to it until it returns. If it returns an error, the client's Call returns the error's text as a
// RemoteError. Requests of one connection are handled one after another, those of several connections at the same time.
//
// PeerOf(ctx) says who asks. The context is done when the connection has ended or the server was closed; its cause says
// why. The end of a client is noticed while the handler runs if the handler uses Done or Err of the context, and unless
// the client has sent further requests that wait in a stream.
type Handler func(ctx context.Context, into, request []byte) ([]byte, error)

// Server answers requests. Any goroutine may call its methods. The fields must not change after the first call.
type Server struct {
	Handler Handler
	MaxSize int // size of the largest request and response in bytes, beyond which Call returns an error; 0 means DefaultMaxSize

	sessions sessions
}

// ErrServerClosed is returned by Serve and ServeConn after Shutdown or Close. It is the cause of the contexts of requests
// after Close.
var ErrServerClosed = errors.New("message: the server was closed")

// Serve accepts connections from l and answers their requests with h, as Server.Serve does.
func Serve(l net.Listener, h Handler) error {
	s := Server{Handler: h}
	return s.Serve(l)
}

// Serve accepts connections from l and answers their requests, each connection in a goroutine of its own. If Accept fails
// for lack of descriptors or memory, Serve tries again after a while. If Accept fails otherwise, for example because l is
// closed, Serve closes all connections at the same time, waits for their goroutines, and returns the error of Accept, or
// nil if it is net.ErrClosed. After Shutdown, Serve returns ErrServerClosed when the last connection has ended.
//
// Serve does not bound the number of connections, nor the time of an idle one: to do so, wrap the listener.
func (s *Server) Serve(l net.Listener) error {
	if !s.sessions.listen(l) {
		_ = l.Close()
		return ErrServerClosed
	}
	defer s.sessions.unlisten(l)
	open := connections{all: make(map[net.Conn]struct{})}
	for {
		c, err := accept(l)
		switch {
		case err != nil && s.sessions.ending():
			open.group.Wait()
			return ErrServerClosed
		case err != nil:
			open.close()
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
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
// client has closed it between two requests, and ErrServerClosed after Shutdown or Close.
func (s *Server) ServeConn(c net.Conn) error {
	x := newSession(c, s.MaxSize)
	defer x.conn.Close()
	if !s.sessions.add(x) {
		return ErrServerClosed
	}
	err := x.serve(s.Handler)
	x.end(err)
	if s.sessions.remove(x); s.sessions.ending() {
		return ErrServerClosed
	}
	return err
}
