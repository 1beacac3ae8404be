package message

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"unicode"
)

// Client sends requests over a connection and returns their responses. Any number of goroutines may call it.
//
// One of the goroutines that wait for a response reads the connection for all of them. A Client has a goroutine of its
// own only after the context of a Call has ended, until the response has come or Close is called: if nobody read that
// response, the peer could not send it, and would not read the next request.
type Client struct {
	conn    *Conn
	reading chan struct{}  // holds a token while a goroutine reads responses
	group   sync.WaitGroup // of drain

	mu       sync.Mutex // guards the fields below
	pending  map[uint32]*call
	last     uint32 // number of the last request
	unwanted int    // responses that the peer owes to calls whose context has ended
	draining bool   // drain runs
	closed   bool
	err      error         // why the client has failed
	failed   chan struct{} // closed when err is set
}

// call is an outstanding request.
type call struct {
	response []byte
	err      error
	done     chan struct{} // gets a token when the fields above are set
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// maxErrorText is the size in bytes of the longest error text of a peer that is kept.
const maxErrorText = 4 << 10

// RemoteError is the text of the error that a handler of the peer has returned, without characters that do not print. It
// has the first 4 KiB of the text.
type RemoteError string

func (e RemoteError) Error() string { return string(e) }

// printable replaces a character that does not print, because an error often goes to a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// NewClient returns a Client that sends requests over c. It owns c from then on.
func NewClient(c net.Conn) *Client {
	m := New(c)
	m.in.copies = false // readOne copies the response
	return &Client{conn: m, reading: make(chan struct{}, 1), pending: make(map[uint32]*call), failed: make(chan struct{})}
}

// SetMaxSize sets the size of the largest request and response in bytes. It must be called before the first request.
func (c *Client) SetMaxSize(n int) { c.conn.SetMaxSize(n) }

// Close closes the connection. Outstanding calls return an error that wraps net.ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.setError(errClosed)
	c.err = errClosed // also of a client that has failed before
	c.mu.Unlock()
	err := c.conn.Close()
	c.group.Wait()
	return err
}

// Call sends a request and waits for its response. It appends the response to the slice into and returns the result, as
// the function append does; into may be nil. The error of the peer's handler is a RemoteError, and so is that of
// a request or a response that is larger than Server.MaxSize. If the context ends, Call returns its error, and a response
// that comes later is dropped.
func (c *Client) Call(ctx context.Context, into, request []byte) ([]byte, error) {
	k := calls.Get().(*call)
	k.response, k.err = into, nil
	id, err := c.begin(k)
	if err != nil {
		return into, err
	}
	err = c.conn.write(ctx, header{kind: kindRequest, id: id}, request)
	sent := err == nil
	if sent {
		err = c.wait(ctx, k)
	}
	if err != nil && c.forget(id, sent) {
		calls.Put(k)
		c.notSent()
		return into, err
	}
	if err != nil { // the response came first
		<-k.done
	}
	response, err := k.response, k.err
	k.response = nil
	calls.Put(k)
	return response, err
}

// begin numbers a request.
func (c *Client) begin(k *call) (id uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	for {
		c.last = (c.last + 1) & idMask
		if c.pending[c.last] == nil {
			break
		}
	}
	c.pending[c.last] = k
	return c.last, nil
}

// forget drops an outstanding request. If it was sent, its response will be read. forget returns false if the request has
// its response.
func (c *Client) forget(id uint32, sent bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[id] == nil {
		return false
	}
	delete(c.pending, id)
	if sent {
		c.unwanted++
		if !c.draining && !c.closed {
			c.draining = true
			c.group.Go(c.drain)
		}
	}
	return true
}

// drain reads until the peer has sent all unwanted responses.
func (c *Client) drain() {
	c.reading <- struct{}{}
	defer func() { <-c.reading }()
	for c.owed() {
		_ = c.readOne(context.Background())
	}
}

// owed returns whether a response is unwanted; if not, drain ends.
func (c *Client) owed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = c.unwanted > 0 && c.err == nil
	return c.draining
}

// wait waits until the call is done. It returns an error if the context ends before.
func (c *Client) wait(ctx context.Context, k *call) error {
	select {
	case <-k.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case c.reading <- struct{}{}:
	}
	defer func() { <-c.reading }()
	for {
		select {
		case <-k.done: // by this goroutine, or by the one that read before
			return nil
		default:
		}
		if err := c.readOne(ctx); err != nil {
			return err
		}
	}
}

// readOne reads a response and completes its call. An error other than that of the context fails the client.
func (c *Client) readOne(ctx context.Context) error {
	h, p, err := c.conn.read(ctx)
	if err != nil && ctx.Err() != nil && err == ctx.Err() {
		return err
	}
	if err == nil && h.kind != kindResponse && h.kind != kindError {
		err = fmt.Errorf("message: the peer has sent a frame of kind %d to a Client: it expects responses of Serve", h.kind)
	}
	if err != nil {
		c.fail(err)
		return nil // k.done has a token now
	}
	c.mu.Lock()
	k := c.pending[h.id]
	delete(c.pending, h.id)
	if k == nil && c.unwanted > 0 {
		c.unwanted--
	}
	c.mu.Unlock()
	switch {
	case k == nil: // its context has ended
		return nil
	case h.kind == kindError:
		k.err = RemoteError(bytes.Map(printable, p[:min(len(p), maxErrorText)]))
	default:
		k.response = append(k.response, p...)
	}
	k.done <- struct{}{}
	return nil
}

// notSent fails the client if a request was cut off: no later one can be sent, and the responses of earlier ones may
// never come, because the peer waits for the rest of the request.
func (c *Client) notSent() {
	if err := c.conn.brokenBy(); err != nil {
		c.fail(err)
	}
}

// Done returns a channel that is closed when the client cannot send requests any more. Err says why. A pool drops such a
// client.
func (c *Client) Done() <-chan struct{} { return c.failed }

// Err returns nil while the client can send requests. After Close, it returns an error that wraps net.ErrClosed. After a
// request was cut off in its middle, because its context had ended, it returns one that wraps ErrBroken.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

var errClosed = fmt.Errorf("message: the client was closed: %w", net.ErrClosed)

// fail ends all outstanding calls and refuses new ones.
func (c *Client) fail(err error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setError(err)
	for id, k := range c.pending {
		delete(c.pending, id)
		k.err = c.err
		k.done <- struct{}{}
	}
}

// setError sets the error of the client, unless it has one. mu is held.
func (c *Client) setError(err error) {
	if c.err == nil {
		c.err = err
		close(c.failed)
	}
}
