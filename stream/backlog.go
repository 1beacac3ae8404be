package stream

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/datxdp/datxdp/dat"
)

// backlog has the streams of a listener before Accept returns them, and the requests for which it has no room.
type backlog struct {
	places quota      // of streams, connecting or ready
	ready  chan *Conn // established streams, the oldest first; it has room for all places

	mu         sync.Mutex // guards the fields below
	connecting map[*Conn]struct{}
	waiting    []request // the oldest first; at most size
	size       int
	room       chan struct{} // capacity 1; gets a token when waiting has become shorter
	closed     bool
}

// request is a connection request of a stream.
type request struct {
	cr   *dat.CR
	from *net.TCPAddr
	to   netip.Addr // address of this host, which may have several
	peer remoteRing
}

func (b *backlog) init(size int) {
	b.size = size
	b.places = quota{limit: size + 1, address: 1, network: 1} // so that a backlog of 1 has a place for an address
	b.ready = make(chan *Conn, size+1)
	b.connecting = make(map[*Conn]struct{})
	b.room = make(chan struct{}, 1)
}

// serve accepts requests until the listener is closed or the adapter has failed.
func (l *Listener) serve() {
	for {
		var ev dat.Event
		if _, err := l.evd.WaitContext(l.ctx, 1, &ev); err != nil {
			l.cancel(err) // without an effect if the listener is closed, or its adapter has ended
			return
		}
		l.arrive(ev.CR)
		for l.full() {
			select {
			case <-l.room:
			case <-l.ctx.Done():
				return
			}
		}
	}
}

// full reports whether no further request may wait, except in the dispatcher.
func (l *Listener) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) >= l.size
}

// arrive accepts a request, refuses it, or lets it wait for room.
func (l *Listener) arrive(cr *dat.CR) {
	q, err := cr.Query()
	if err != nil {
		return
	}
	r := request{cr: cr, to: q.LocalAddress, from: net.TCPAddrFromAddrPort(netip.AddrPortFrom(q.RemoteAddress, uint16(q.RemotePort)))}
	if r.peer, err = parseHello(q.PrivateData); err != nil {
		refuse(cr, err)
		return
	}
	if l.places.take(r.address(), 1) {
		l.accept(&r)
		return
	}
	l.mu.Lock()
	l.waiting = append(l.waiting, r)
	l.mu.Unlock()
	l.admit() // a place may have become free meanwhile
}

func (r *request) address() netip.Addr { return r.from.AddrPort().Addr() }

// accept answers a request that has a place. The agent of the stream goes on when the connection is established, or has
// failed.
func (l *Listener) accept(r *request) {
	c, err := l.newStream(r)
	if err != nil {
		refuse(r.cr, err)
		l.leave(r.address())
		return
	}
	if !l.enter(c) {
		_ = r.cr.Reject(nil)
		c.giveUp()
		return
	}
	if err := r.cr.Accept(c.ep, hello(c.in.first.remote())); err != nil {
		_ = r.cr.Reject(nil)
		if c.claim() {
			l.drop(c)
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchIfDue()
}

// enter adds a stream to those that are connecting, unless the listener is closed.
func (l *Listener) enter(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.connecting[c] = struct{}{}
	}
	return !l.closed
}

// newStream makes the stream for a request.
func (l *Listener) newStream(r *request) (*Conn, error) {
	l.stack.another()
	c, err := l.stack.newConn(r.from)
	if err != nil {
		return nil, err
	}
	c.local, c.out.peer.remoteRing = l.addrOf(r), r.peer
	c.life, c.listener, c.linger = pending, l, l.linger
	return c, nil
}

// addrOf returns the address of this end that a request names.
func (l *Listener) addrOf(r *request) *net.TCPAddr {
	if !r.to.IsValid() {
		return l.addr
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(r.to.Unmap(), uint16(l.addr.Port)))
}

// established hands a stream over to Accept.
func (l *Listener) established(c *Conn) {
	l.mu.Lock()
	delete(l.connecting, c)
	closed := l.closed
	if !closed {
		l.ready <- c // has room
	}
	l.mu.Unlock()
	if closed {
		c.reset()
	}
}

// took notes that Accept has returned a stream, and accepts requests in its place.
func (l *Listener) took(c *Conn) {
	accepts.Add(1)
	c.mu.Lock()
	c.listener = nil
	c.mu.Unlock()
	l.leave(c.peer())
}

// drop frees a stream that was not established.
func (l *Listener) drop(c *Conn) {
	l.mu.Lock()
	delete(l.connecting, c)
	l.mu.Unlock()
	c.free()
	l.leave(c.peer())
}

// leave gives a place back, and accepts requests that wait for one.
func (l *Listener) leave(from netip.Addr) {
	l.places.give(from, 1)
	l.admit()
}

// admit accepts the requests for which there is room by now.
func (l *Listener) admit() {
	for {
		r, ok := l.next()
		if !ok {
			return
		}
		l.accept(&r)
	}
}

// next takes the oldest request that gets a place.
func (l *Listener) next() (r request, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.waiting, func(r request) bool { return l.places.take(r.address(), 1) })
	if i < 0 {
		return request{}, false
	}
	r = l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	select {
	case l.room <- struct{}{}:
	default:
	}
	return r, true
}

// clear refuses the requests and resets the streams. Streams that become established later are reset, too.
func (b *backlog) clear() {
	b.mu.Lock()
	b.closed = true
	waiting, connecting := b.waiting, b.connecting
	b.waiting, b.connecting = nil, nil
	b.mu.Unlock()
	for _, r := range waiting {
		_ = r.cr.Reject(nil)
	}
	for c := range connecting {
		c.giveUp()
	}
	for len(b.ready) > 0 {
		(<-b.ready).reset()
	}
}

// claim reports whether the caller has to free a pending stream. If the connection is established by now, or has failed,
// its agent goes on.
func (c *Conn) claim() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life != pending {
		return false
	}
	c.life = freed
	return true
}

// giveUp frees a pending stream.
func (c *Conn) giveUp() {
	if c.claim() {
		c.free()
	}
}

// settle ends the wait of a pending stream for its connection. It returns what the agent has to do for it. mu is held.
func (c *Conn) settle() func() {
	l := c.listener
	if c.opened {
		c.life = inUse
		c.watchIfDue()
		return func() { l.established(c) }
	}
	c.life = freed
	return func() { l.drop(c) }
}

// reset ends a stream that no program has got.
func (c *Conn) reset() {
	_ = c.SetLinger(0)
	_ = c.Close()
}
