package wire

import (
	"net/netip"
	"slices"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/rtt"
)

// Dial says whom to connect to.
type Dial struct {
	Path link.Path // to Host; the connection takes it over, also if Connect fails
	Host netip.Addr
	Qual uint64
	Port uint64 // our own port qualifier, shown to the peer's consumer
	// Timeout after which the attempt ends with KindTimedOut; negative means never.
	Timeout     time.Duration
	Private     []byte // copied
	Completions CompletionQueues
}

// dialState is what a connection needs while it asks.
type dialState struct {
	qual, port uint64
	private    []byte
	cookie     uint64 // that proves our address to the peer
	challenges int    // received
	until      Time   // the consumer's limit
	graceEnd   Time   // until when "no listener" is not believed; 0: not heard yet
	retry      time.Duration
	nextTry    Time
	offered    Time // when Accept last left
	tries      int  // repeats of Accept that nobody asked for
}

// Connect begins the active side of a connection, which must be Idle. Exactly one completion of a
// connection kind follows.
func (e *Engine) Connect(c *Conn, d Dial) error {
	e.mustOwn()
	if c.State() != Idle {
		e.link.Release(d.Path)
		return ErrState
	}
	if len(d.Private) > proto.MaxPrivateData {
		e.link.Release(d.Path)
		return ErrPrivateData
	}
	if err := c.attach(e, d.Path, d.Completions, e.now); err != nil {
		e.link.Release(d.Path)
		return err
	}
	c.peerAddr = addressOf(d.Host)
	c.dial = dialState{qual: d.Qual, port: d.Port, private: slices.Clone(d.Private),
		until: never, retry: helloRetry}
	if d.Timeout >= 0 {
		c.dial.until = e.now.Add(d.Timeout)
	}
	c.setState(Connecting)
	c.sendConnect()
	return nil
}

// sendConnect sends Connect and arms the next try.
func (c *Conn) sendConnect() {
	hi := c.hello(c.dial.private)
	hi.Qual, hi.Port, hi.Cookie = c.dial.qual, c.dial.port, c.dial.cookie
	h := c.header(proto.Connect, c.sent.Nxt)
	h.CID, h.Tag = 0, 0
	c.sendHello(&h, &hi)
	c.armRetry()
}

// asking reports whether the peer has not accepted yet what this side asks for.
func (c *Conn) awaitsAccept() bool { return c.State() == Connecting && !c.peerKnown }

// armRetry arms the next try of a handshake packet.
func (c *Conn) armRetry() {
	d := &c.dial
	d.nextTry = c.eng.now.Add(d.retry)
	d.retry = min(2*d.retry, helloRetryMax)
	c.setDeadline(min(d.nextTry, d.until))
}

func (c *Conn) sendHello(h *proto.Header, hi *proto.Hello) {
	c.eng.sendHello(c.path, h, hi)
}

func (e *Engine) sendHello(path link.Path, h *proto.Header, hi *proto.Hello) {
	size := hi.Size()
	var p packet
	if e.begin(&p, path, proto.HeaderSize+size+proto.TrailerSize) {
		hi.Put(p.put(size))
		p.finish(h)
	}
}

// requestKey tells connection attempts apart.
type requestKey struct {
	from     netip.AddrPort
	cid, tag uint32
}

// Request is a connection request that arrived. Its fields do not change.
type Request struct {
	From    netip.AddrPort // where the requester receives
	Qual    uint64
	Port    uint64 // the requester's port qualifier
	Private []byte // belongs to the service
	// ReadIn and ReadOut are what the requester can serve, and wants to have outstanding, of RDMA reads.
	ReadIn, ReadOut int
	// User is for the service that the request was given to; the engine does not look at it.
	User any

	eng        *Engine
	service    Service // that it was given to
	header     proto.Header
	hello      proto.Hello
	key        requestKey
	conn       *Conn     // accepted
	open       bool      // not half-open any more
	places     [2]listed // while it is accepted and not confirmed
	gone       bool
	path       link.Path   // of a request that was rejected
	rejection  proto.Hello // and what it was told
	rejectedAt Time        // when, last
}

// Engine is the engine on which the request is to be answered.
func (r *Request) Engine() *Engine { return r.eng }

// control handles the packets that set up and end connections.
func (e *Engine) control(h *proto.Header, bufs []link.Buf, total int) (kept bool) {
	if len(bufs) != 1 { // they are all short
		e.stats.BadPackets++
		return false
	}
	body := bufs[0].Data[proto.HeaderSize : total-proto.TrailerSize]
	if h.Type != proto.Connect && h.Type != proto.Reset && e.forward(h, bufs) {
		return false
	}
	switch h.Type {
	case proto.Connect:
		return e.handleConnect(h, body, bufs)
	case proto.Accept, proto.Reject, proto.Challenge, proto.Versions:
		e.handleAnswer(h, body, &bufs[0])
	case proto.Close:
		return e.handleClose(h, body, bufs)
	case proto.Closed:
		e.handleClosed(h, &bufs[0])
	case proto.Reset:
		e.handleReset(h, bufs)
	default:
		e.stats.BadPackets++
	}
	return false
}

// handleConnect gives a request to the service that it is for, or answers it.
func (e *Engine) handleConnect(h *proto.Header, body []byte, bufs []link.Buf) (kept bool) {
	var hi proto.Hello
	if h.Tag != 0 || !hi.Parse(body) || !validHello(&hi) {
		e.stats.BadPackets++
		return false
	}
	if hi.Refused != 0 {
		return e.refuse(h, &hi, bufs, proto.ReasonOption)
	}
	key := requestKey{e.link.Source(&bufs[0]), hi.CID, hi.Tag}
	if r := e.requests[key]; r != nil {
		e.repeatAnswer(r)
		return false
	}
	s := e.host.service(hi.Qual)
	if s == nil {
		return e.refuse(h, &hi, bufs, proto.ReasonNoListener)
	}
	fresh, ok := e.proven(&key, h, &hi)
	switch {
	case !ok:
		e.stats.ConnRequestsChallenged++
		return e.replyHello(h, &hi, bufs, proto.Challenge, proto.Hello{Cookie: fresh})
	case e.keyGuesses.blocked(key.from.Addr(), e.now) || !e.admit(key.from.Addr()):
		e.stats.ConnRequestsDropped++
		return false
	case !e.conns.room(key.from.Addr()):
		return e.refuse(h, &hi, bufs, proto.ReasonResources)
	}
	if r := e.newRequest(s, key, h, &hi); !s.Arrive(r) {
		e.forget(r)
		return e.refuse(h, &hi, bufs, proto.ReasonBacklog)
	}
	return false
}

// repeatAnswer answers the repeat of a request as the request was answered.
func (e *Engine) repeatAnswer(r *Request) {
	if r.gone {
		e.sendReject(r)
		return
	}
	if c := r.conn; c != nil && c.State() == Accepting && e.now.Sub(c.dial.offered) >= helloRetry {
		c.sendAccept()
	}
}

// newRequest keeps a request, which counts as half-open.
func (e *Engine) newRequest(s Service, key requestKey, h *proto.Header, hi *proto.Hello) *Request {
	from := netip.AddrPortFrom(key.from.Addr(), e.portOf(h, hi, key.from))
	r := &Request{From: from, Qual: hi.Qual, Port: hi.Port, Private: slices.Clone(hi.Private),
		ReadIn: int(hi.ReadIn), ReadOut: int(hi.ReadOut),
		eng: e, service: s, header: *h, hello: *hi, key: key}
	r.hello.Private = nil
	e.requests[key] = r
	e.halfOpen.take(from.Addr())
	return r
}

// presentable reports whether a Hello names what a connection needs.
func validHello(hi *proto.Hello) bool {
	return hi.MTU >= minPacket && hi.Window >= minPeerWindow && hi.CID != 0 && hi.Tag != 0
}

// refuse turns a Connect round into a Reject, without any state.
func (e *Engine) refuse(h *proto.Header, hi *proto.Hello, bufs []link.Buf, why proto.Reason) (kept bool) {
	e.stats.ConnRequestsRejected++
	return e.replyHello(h, hi, bufs, proto.Reject, proto.Hello{Reason: why})
}

// replyHello answers a Connect in the frame that it came in.
func (e *Engine) replyHello(h *proto.Header, hi *proto.Hello, bufs []link.Buf, t proto.Type, body proto.Hello) (kept bool) {
	out := proto.Header{Type: t, CID: hi.CID, Ack: h.PSN, TS: e.now.Stamp(), Tag: hi.Tag}
	body.CID, body.Qual, body.MTU = hi.CID, hi.Qual, hi.MTU
	port := e.portOf(h, hi, e.link.Source(&bufs[0]))
	out.Put(bufs[0].Data)
	e.reply(bufs, port, body.Put(bufs[0].Data[proto.HeaderSize:]))
	return true
}

// portOf is the UDP port at which the sender of a packet receives: the one that its Hello names; else the
// packet's source port, if the header says so; else the one at which we do.
func (e *Engine) portOf(h *proto.Header, hi *proto.Hello, from netip.AddrPort) uint16 {
	switch {
	case hi.UDPPort != 0:
		return hi.UDPPort
	case h.Flags&proto.SourcePort != 0:
		return from.Port()
	default:
		return e.udpPort
	}
}

// reply sends an answer in the received packet's own frame, to a UDP port at the address it came from: a
// header and n bytes of body, which are no more than arrived.
func (e *Engine) reply(bufs []link.Buf, port uint16, n int) {
	b := bufs[0]
	n += proto.HeaderSize
	b.Data = b.Data[:n+proto.TrailerSize]
	proto.PutTrailer(b.Data[n:], proto.CRC(0, b.Data[:n]))
	b.Path, b.Port, b.Flags = link.PathReply, port, 0
	e.stats.TxPackets++
	e.tx = append(e.tx, b)
	if len(e.tx) >= maxTransmit {
		e.flush()
	}
}

// bare sends a header without a body in the received packet's own frame to its sender.
func (e *Engine) replyHeader(bufs []link.Buf, asked *proto.Header, h *proto.Header) {
	port := e.portOf(asked, &proto.Hello{}, e.link.Source(&bufs[0]))
	h.Put(bufs[0].Data)
	e.reply(bufs, port, 0)
}

// leaveHalfOpen takes a request off the count of half-open ones.
func (e *Engine) leaveHalfOpen(r *Request) {
	if r.open {
		return
	}
	r.open = true
	e.halfOpen.give(r.From.Addr())
	e.unconfirmed.remove(r)
}

// forget drops a request.
func (e *Engine) forget(r *Request) {
	e.leaveHalfOpen(r)
	if e.requests[r.key] == r {
		delete(e.requests, r.key)
	}
	r.gone = true
}

// handleAnswer handles what a peer answers to Connect: Accept, Reject, Challenge and Versions.
func (e *Engine) handleAnswer(h *proto.Header, body []byte, b *link.Buf) {
	var hi proto.Hello
	c := e.lookup(h.CID)
	switch {
	case c == nil, !c.fromPeer(h, b):
		e.stats.UnknownConnection++
		return
	case h.Ack != c.sent.Una:
		e.stats.Forged++
		return
	case !c.awaitsAccept():
		return // a repeat
	case h.Type == proto.Versions:
		c.handleVersions(body)
		return
	case !hi.Parse(body):
		e.stats.BadPackets++
		return
	}
	switch h.Type {
	case proto.Reject:
		c.handleReject(&hi)
	case proto.Challenge:
		c.handleChallenge(&hi)
	default:
		c.handleAccept(h, &hi)
	}
}

// handleAccept takes the connection into use: Ready leaves next.
func (c *Conn) handleAccept(h *proto.Header, hi *proto.Hello) {
	e := c.eng
	switch {
	case !validHello(hi):
		e.stats.BadPackets++
		return
	case hi.Refused != 0: // the peer would wait for us
		c.setPeer(h, hi)
		c.finish(KindRefused, proto.Goodbye{Reason: proto.ReasonOption})
		return
	}
	c.lastHeard = e.now
	c.recv.echo.stamp, c.recv.echo.at = h.TS, e.now
	if d, ok := rtt.Sample(e.now, h.Echo); ok {
		c.rtt.Update(d)
	}
	c.setPeer(h, hi)
	private := slices.Clone(hi.Private)
	c.peerData.Store(&private)
	c.readyPending = true
	c.schedule()
}

// handleReject ends the attempt to connect. "Nobody listens" does so only when it is heard ListenGrace after it was heard first.
func (c *Conn) handleReject(hi *proto.Hello) {
	d := &c.dial
	if hi.Reason == proto.ReasonNoListener {
		if d.graceEnd == 0 {
			d.graceEnd = c.eng.now.Add(c.host.limits.ListenGrace)
		}
		if c.eng.now < d.graceEnd {
			return // the next try is armed
		}
	}
	kind := KindRefused
	c.why = givenByPeer(hi.Reason) &^ BreakByPeer
	if hi.Reason == proto.ReasonPeer {
		kind, c.why = KindPeerRejected, 0
		private := slices.Clone(hi.Private)
		c.peerData.Store(&private)
	}
	c.end(kind, StatusFlushed)
}
