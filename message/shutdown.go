package message

import (
	"context"
	"net"
	"sync"
	"time"
)

// Tunables of Shutdown.
const (
	// shutdownPause is the time without a request after which Shutdown ends a connection. A request that the client has
	// sent before it could know of the end arrives within a round trip, which takes less.
	shutdownPause = 10 * time.Millisecond
	// shutdownTime is the time after which Shutdown reads no further requests of a client that sends them without a pause.
	shutdownTime = time.Second
)

// sessions are the listeners and connections of a server.
type sessions struct {
	mu        sync.Mutex // guards the fields below
	listeners map[net.Listener]struct{}
	all       map[*session]struct{}
	shut      bool          // Shutdown or Close was called
	none      chan struct{} // closed when the last connection ends; nil if nothing waits for that
}

// ending reports whether Shutdown or Close was called.
func (s *sessions) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shut
}

// listen adds a listener, unless the server is shut.
func (s *sessions) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners == nil {
		s.listeners = make(map[net.Listener]struct{})
	}
	if !s.shut {
		s.listeners[l] = struct{}{}
	}
	return !s.shut
}

func (s *sessions) unlisten(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// add adds a connection, unless the server is shut.
func (s *sessions) add(x *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[*session]struct{})
	}
	if !s.shut {
		s.all[x] = struct{}{}
	}
	return !s.shut
}

func (s *sessions) remove(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.all, x); len(s.all) == 0 && s.none != nil {
		close(s.none)
		s.none = nil
	}
}

// finish calls end for each connection, after it has closed the listeners. It returns a channel that is closed when the
// last connection has ended.
func (s *sessions) finish(end func(*session)) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	for l := range s.listeners {
		_ = l.Close()
	}
	for x := range s.all {
		end(x)
	}
	none := s.none
	switch {
	case len(s.all) == 0:
		none = make(chan struct{})
		close(none)
	case none == nil:
		none = make(chan struct{})
		s.none = none
	}
	return none
}

// Shutdown ends the server without interrupting requests, as http.Server.Shutdown does: it closes the listeners, lets
// each connection answer the requests of its client, and closes it when no byte has come for 10 ms and no request is
// incomplete. A client that goes on sending is cut off after one second, and after the request that is handled then.
// Shutdown returns nil when all connections have ended. If the context ends before, it returns the context's error, and
// the connections go on until Close.
func (s *Server) Shutdown(ctx context.Context) error {
	ended := s.sessions.finish((*session).shutDown)
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the listeners and all connections. The contexts of requests are done. It does not wait for handlers; Serve
// returns when they have returned.
func (s *Server) Close() error {
	var closing sync.WaitGroup // the peer of a stream can delay its Close
	s.sessions.finish(func(x *session) {
		x.end(ErrServerClosed)
		closing.Go(func() { _ = x.conn.Close() })
	})
	closing.Wait()
	return nil
}
