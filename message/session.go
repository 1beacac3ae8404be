package message

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// session is the server's end of a connection.
type session struct {
	conn *Conn
	peer Peer
	ctx  context.Context // of all requests; done when the connection has ended or the server was closed
	end  context.CancelCauseFunc

	mu       sync.Mutex    // guards the fields below
	handling bool          // the handler runs, so that no request is read
	watched  chan struct{} // closed when the watch of the peer has ended; nil if there is none
	shut     time.Time     // when Shutdown was called; zero before
}

// Peer says who sends requests.
type Peer struct {
	Addr net.Addr // of the connection
	Key  [32]byte // the peer's public key in the secure mode of a stream; zero otherwise
	Name string   // the peer's name in the secure mode of a stream; empty otherwise
}

type sessionKey struct{}

// PeerOf returns the peer of the request to which the context belongs. It returns false for any other context.
func PeerOf(ctx context.Context) (Peer, bool) {
	x, ok := ctx.Value(sessionKey{}).(*session)
	if !ok {
		return Peer{}, false
	}
	return x.peer, true
}

func newSession(c net.Conn, maxSize int) *session {
	x := &session{conn: New(c), peer: Peer{Addr: c.RemoteAddr()}}
	x.conn.in.late = true // to answer what has come
	if maxSize > 0 {
		x.conn.SetMaxSize(maxSize)
	}
	if s, ok := c.(interface{ Identity() ([32]byte, string) }); ok {
		x.peer.Key, x.peer.Name = s.Identity()
	}
	x.ctx, x.end = context.WithCancelCause(context.WithValue(context.Background(), sessionKey{}, x))
	return x
}

// requestContext is the context of a request. Its first use as a context starts the watch of the peer.
type requestContext struct {
	context.Context
	session *session
}

func (c requestContext) Done() <-chan struct{} {
	c.session.watch()
	return c.Context.Done()
}

func (c requestContext) Err() error {
	c.session.watch()
	return c.Context.Err()
}

// serve answers requests until the end of the connection.
func (x *session) serve(h Handler) error {
	var out []byte
	for {
		ask, p, err := x.next()
		large := (*sizeError)(nil)
		switch {
		case errors.As(err, &large) && ask.kind == kindRequest:
			err = x.answer(ask.id, nil, fmt.Errorf("message: the request has %d bytes, more than the server's limit of %d", large.length, large.limit))
		case err != nil || p == nil:
			return err
		default:
			out, err = x.handle(h, out[:0], p)
			err = x.answer(ask.id, out, err)
		}
		if err != nil {
			return err
		}
		if cap(out) > bufferSize {
			out = nil // do not keep the memory of a rare large response
		}
	}
}

// handle runs the handler for a request. The response is appended to into.
func (x *session) handle(h Handler, into, request []byte) ([]byte, error) {
	out, err := h(requestContext{x.ctx, x}, into, request)
	x.handled()
	if limit := x.conn.in.max; err == nil && len(out) > limit {
		err = fmt.Errorf("message: the response has %d bytes, more than the server's limit of %d", len(out), limit)
	}
	return out, err
}

// answer sends the response to a request, or an error in its place.
func (x *session) answer(id uint32, response []byte, err error) error {
	if err == nil {
		return x.conn.write(context.Background(), header{kind: kindResponse, id: id}, response)
	}
	text := err.Error()
	return x.conn.write(context.Background(), header{kind: kindError, id: id}, []byte(text[:min(len(text), maxErrorText)]))
}

// next returns the next request, or nil at the end of the connection.
func (x *session) next() (ask header, p []byte, err error) {
	if !x.mayRead() {
		return ask, nil, nil
	}
	ask, p, err = x.conn.read(context.Background())
	for x.resumes(err) {
		ask, p, err = x.conn.read(context.Background())
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err == io.EOF, err != nil && !x.shut.IsZero() && errors.Is(err, os.ErrDeadlineExceeded):
		return ask, nil, nil
	case err == nil && ask.kind != kindRequest:
		err = errors.New("message: the peer has sent a message to a Server: it expects requests of Call")
	}
	if err != nil {
		return ask, nil, err
	}
	x.handling = true
	return ask, p[:len(p):len(p)], nil
}

// mayRead prepares the read of a request. It returns false if Shutdown has come and its time is over.
func (x *session) mayRead() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shut.IsZero() || x.extend()
}

// resumes reports whether the read of a request, which has failed with err, goes on: Shutdown has limited its time, and a
// part of the request has arrived.
func (x *session) resumes(err error) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return errors.Is(err, os.ErrDeadlineExceeded) && !x.shut.IsZero() && x.conn.in.within() && x.extend()
}

// extend allows a read after Shutdown, for a limited time. It returns false if the time of Shutdown is over. mu is held.
func (x *session) extend() bool {
	x.limitRead()
	return time.Since(x.shut) < shutdownTime
}

// limitRead bounds the wait for the next request. mu is held.
func (x *session) limitRead() {
	_ = x.conn.conn.SetReadDeadline(time.Now().Add(shutdownPause))
}

// shutDown ends the session as soon as the client has no request outstanding.
func (x *session) shutDown() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shut = time.Now()
	if !x.handling {
		x.limitRead()
	}
}

// watch notices the end of the connection while the handler runs: it reads ahead.
func (x *session) watch() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.handling || x.watched != nil {
		return
	}
	done := make(chan struct{})
	x.watched = done
	go func() {
		defer close(done)
		if err := x.conn.in.ahead(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			x.end(err)
		}
	}()
}

// handled ends the watch.
func (x *session) handled() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.handling = false
	if x.watched == nil {
		return
	}
	_ = x.conn.conn.SetReadDeadline(time.Unix(1, 0))
	<-x.watched
	x.watched = nil
	_ = x.conn.conn.SetReadDeadline(time.Time{})
}
