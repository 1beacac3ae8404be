package wire

import (
	"net/netip"
	"slices"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Dial holds the arguments of Connect.
type Dial struct {
	Path link.Path // path to Host; Connect takes it over, even if it fails
	Host netip.Addr
	Qual uint64
	Port uint64 // our port qualifier, which the peer's consumer sees
	// Timeout is the time after which the attempt ends with KindTimedOut; negative means never.
	Timeout     time.Duration
	Private     []byte // copied
	Completions CompletionQueues
	Requester   Requester // makes the handshake with Host in secure mode; nil in plaintext mode
}

// dialState is the state of a handshake, on the active or the passive side.
type dialState struct {
	qual, port uint64
	private    []byte
	cookie     uint64 // cookie from the peer's Challenge, which proves our address
	challenges int32  // Challenges received
	tries      int16  // repeats of Accept that the timer has sent
	abandoned  bool   // secure mode: the consumer has dropped the connection; only an Accept is awaited, to close it
	// unreachable is the reason of the last report that a Connect did not arrive; 0 if there is none since the last
	// Challenge.
	unreachable BreakReason
	deadline    Time          // end of the attempt
	graceEnd    Time          // end of ListenGrace, in which ReasonNoListener is ignored; 0: none received yet
	retry       time.Duration // time from the next handshake packet to its repeat; doubles
	nextTry     Time          // when the handshake packet is repeated
	acceptedAt  Time          // when the last Accept left
	opening     *opening      // secure mode: the handshake, until it is over; otherwise nil
}

// Connect begins the active side of a connection with c, which must be Idle. If Connect returns no error, exactly one
// completion follows that reports the result (KindEstablished, for example).
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
	if e.secure != (d.Requester != nil) {
		e.link.Release(d.Path)
		return ErrSecure
	}
	if err := c.attachTo(e, &d); err != nil {
		e.link.Release(d.Path)
		return err
	}
	c.peerAddr = addressOf(d.Host)
	e.sched.join(c)
	c.dial = dialState{qual: d.Qual, port: d.Port, private: slices.Clone(d.Private),
		deadline: never, retry: helloRetry}
	if d.Timeout >= 0 {
		c.dial.deadline = e.now.Add(d.Timeout)
	}
	if e.secure {
		c.dial.opening = newOpening(d.Requester)
	}
	c.setState(Connecting)
	c.sendConnect()
	return nil
}

// attachTo adds the connection to an engine, with the grant of the server.
func (c *Conn) attachTo(e *Engine, d *Dial) error {
	var p *permit
	if e.secure {
		p = newPermit(d.Requester.Grant())
	}
	rights, err := p.rights()
	if err == nil {
		err = c.attach(e, d.Path, d.Completions, e.now)
	}
	if err != nil {
		releasePermit(&p)
		return err
	}
	c.permit, c.peerRights = p, rights
	return nil
}

// sendConnect sends Connect and arms its repeat.
func (c *Conn) sendConnect() {
	if c.dial.opening != nil {
		c.sendSecureConnect()
		return
	}
	hi := c.hello(c.dial.private)
	hi.Qual, hi.Port, hi.Cookie = c.dial.qual, c.dial.port, c.dial.cookie
	h := c.newHeader(proto.Connect, c.sent.Nxt)
	h.CID, h.Tag = 0, 0
	c.sendHello(&h, &hi)
	c.armRetry()
}

// awaitsAccept reports whether this side has sent Connect and the peer has not answered with Accept.
func (c *Conn) awaitsAccept() bool { return c.State() == Connecting && !c.peerKnown }

// armRetry arms the repeat of a handshake packet, with exponential back-off.
func (c *Conn) armRetry() {
	d := &c.dial
	d.nextTry = c.eng.now.Add(d.retry)
	d.retry = min(2*d.retry, helloRetryMax)
	c.setDeadline(min(d.nextTry, d.deadline))
}

func (c *Conn) sendHello(h *proto.Header, hi *proto.Hello) {
	c.eng.sendHello(c.path, 0, h, hi)
}

func (e *Engine) sendHello(path link.Path, flags link.Flags, h *proto.Header, hi *proto.Hello) {
	size := hi.Size()
	var p packet
	if e.begin(&p, path, proto.HeaderSize+size+proto.TrailerSize, nil) {
		e.tx[p.firstFrame].Flags = flags
		hi.Put(p.reserve(size))
		p.finish(h)
	}
}

// control dispatches a packet that sets up or ends a connection. It reports whether a reply has taken over the frame.
func (e *Engine) control(h *proto.Header, bufs []link.Buf, end int) (kept bool) {
	if len(bufs) != 1 { // every control packet fits in a frame
		e.stats.BadPackets++
		return false
	}
	body := bufs[0].Data[proto.HeaderSize:end]
	if h.Type != proto.Connect && h.Type != proto.Reset && e.forwardPacket(h, bufs) {
		return false
	}
	switch h.Type {
	case proto.Connect:
		return e.handleConnect(h, body, bufs)
	case proto.Accept, proto.Reject, proto.Challenge, proto.Versions:
		return e.handleAnswer(h, body, bufs)
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

// handleConnect handles a connection request:
//   - a Connect that names no port for the answer is dropped, and so is one that may get no reply (see replyTime),
//   - a Connect without a valid cookie gets a Challenge, and no state is kept,
//   - a Connect gets a Reject, and no state is kept, if its qualifier has no service or the requester's address may
//     hold no further connection (see connsShare),
//   - a Connect above the limit of half-open requests, or from a blocked address, is dropped,
//   - any other Connect is delivered to the service of its qualifier.
func (e *Engine) handleConnect(h *proto.Header, body []byte, bufs []link.Buf) (kept bool) {
	var hi proto.Hello
	from := e.link.Source(&bufs[0])
	switch {
	case h.Tag != 0 || !hi.Parse(body) || !validHello(&hi) || e.portOf(h, &hi, from) == 0:
		e.stats.BadPackets++
		return false
	case !e.mayAnswerConnect(bufs):
		return false
	case e.secure:
		return e.handleSecureConnect(h, &hi, bufs)
	case !hi.Plain():
		return e.refuse(h, &hi, bufs, proto.ReasonOption)
	}
	key := requestKey{from: from, cid: hi.CID, tag: hi.Tag}
	if r := e.requests[key]; r != nil {
		e.repeatAnswer(r)
		return false
	}
	s := e.host.service(hi.Qual)
	if s == nil {
		return e.refuse(h, &hi, bufs, proto.ReasonNoListener)
	}
	fresh, _, ok := e.checkCookie(&key, h, &hi)
	switch {
	case !ok:
		e.stats.ConnRequestsChallenged++
		return e.replyHello(h, &hi, bufs, proto.Challenge, proto.Hello{Cookie: fresh})
	case e.keyGuesses.blocked(key.from.Addr(), e.now) || !e.admit(key.from.Addr()):
		e.stats.ConnRequestsDropped++
		return false
	case !e.conns.hasPlace(key.from.Addr()):
		return e.refuse(h, &hi, bufs, proto.ReasonResources)
	}
	if r := e.newRequest(s, key, e.link.Target(&bufs[0]), h, &hi); !s.Arrive(r) {
		e.forget(r)
		return e.refuse(h, &hi, bufs, proto.ReasonBacklog)
	}
	return false
}

// repeatAnswer answers a repeated Connect with Reject or Accept again, because the first answer may have been lost. If
// the consumer has not decided yet, no reply leaves.
func (e *Engine) repeatAnswer(r *Request) {
	if r.gone {
		e.sendReject(r)
		return
	}
	if c := r.conn; c != nil && c.State() == Accepting && e.now.Sub(c.dial.acceptedAt) >= helloRetry {
		c.sendAccept()
	}
}

// newRequest creates a request and counts it as half-open.
func (e *Engine) newRequest(s Service, key requestKey, to netip.Addr, h *proto.Header, hi *proto.Hello) *Request {
	from := netip.AddrPortFrom(key.from.Addr(), e.portOf(h, hi, key.from))
	r := &Request{From: from, To: to, Qual: hi.Qual, Port: hi.Port, Private: slices.Clone(hi.Private),
		ReadIn: int(hi.ReadIn), ReadOut: int(hi.ReadOut),
		eng: e, service: s, connect: &connect{header: *h, hello: *hi, arrivedAt: e.now}, requestKeys: requestKeys{key: key}}
	r.connect.hello.Private, r.connect.hello.ServerKey, r.connect.hello.Noise = nil, nil, nil
	e.requests[key] = r
	e.halfOpen.addPlace(from.Addr())
	return r
}

// validHello reports whether a Hello has a CID and a tag, and an MTU and a window of at least the minimum.
func validHello(hi *proto.Hello) bool {
	return hi.MTU >= minPacket && hi.Window >= minPeerWindow && hi.CID != 0 && hi.Tag != 0
}

// refuse answers a Connect with Reject, in the frame of the Connect. It keeps no state.
func (e *Engine) refuse(h *proto.Header, hi *proto.Hello, bufs []link.Buf, why proto.Reason) (kept bool) {
	e.stats.ConnRequestsRejected++
	return e.replyHello(h, hi, bufs, proto.Reject, proto.Hello{Reason: why})
}

// replyHello answers a Connect in the frame of the Connect. The reply is no longer than the Connect, so an attacker
// with a spoofed source address gains no amplification.
func (e *Engine) replyHello(h *proto.Header, hi *proto.Hello, bufs []link.Buf, t proto.Type, body proto.Hello) (kept bool) {
	out := proto.Header{Type: t, CID: hi.CID, Ack: h.PSN, TS: e.now.Stamp(), Tag: hi.Tag}
	body.CID, body.Qual, body.MTU = hi.CID, hi.Qual, hi.MTU
	port := e.portOf(h, hi, e.link.Source(&bufs[0]))
	out.Put(bufs[0].Data)
	e.replyInFrame(bufs, port, body.Put(bufs[0].Data[proto.HeaderSize:]))
	return true
}

// portOf returns the UDP port at which the sender of a packet receives. It returns the first port of this list that
// exists:
//   - the port in the Hello, unless it is 0,
//   - the source port of the packet, if the header has the flag SourcePort,
//   - the port of this engine.
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

// replyInFrame sends a header and n bytes of body in the frame of a received packet, to a UDP port at the packet's
// source address. The reply must not be longer than the received packet.
func (e *Engine) replyInFrame(bufs []link.Buf, port uint16, n int) {
	b := bufs[0]
	n += proto.HeaderSize
	b.Data = b.Data[:n+proto.TrailerSize]
	proto.PutTrailer(b.Data[n:], proto.CRC(0, b.Data[:n]))
	b.Path, b.Port, b.Flags = link.PathReply, port, 0
	e.stats.TxPackets++
	e.sendReply(b)
}

// replyHeader sends a header without a body in the frame of a received packet, to the sender of that packet.
func (e *Engine) replyHeader(bufs []link.Buf, asked *proto.Header, h *proto.Header) {
	port := e.portOf(asked, &proto.Hello{}, e.link.Source(&bufs[0]))
	h.Put(bufs[0].Data)
	e.replyInFrame(bufs, port, 0)
}

// handleAnswer dispatches the peer's answers to Connect: Accept, Reject, Challenge and Versions. It reports whether a
// reply has taken over the frame.
func (e *Engine) handleAnswer(h *proto.Header, body []byte, bufs []link.Buf) (kept bool) {
	c := e.lookup(h.CID)
	switch {
	case c == nil, !c.isFromPeer(h, &bufs[0]):
		return e.handleUnknownAnswer(h, body, bufs)
	case !c.awaitsAccept(): // a repeated answer, which acknowledges less than the peer has acknowledged since
	case h.Ack != c.sent.Una:
		e.stats.Forged++
	case e.secure:
		c.handleSecureAnswer(h, body)
	default:
		c.handleAnswer(h, body)
	}
	return false
}

// handleUnknownAnswer handles an answer to a Connect of an attempt that this end does not know. An Accept gets Reset, in
// its own frame and within the limit of stateless replies: its sender would wait for Ready until GiveUp otherwise.
func (e *Engine) handleUnknownAnswer(h *proto.Header, body []byte, bufs []link.Buf) (kept bool) {
	e.stats.UnknownConnection++
	var hi proto.Hello
	if h.Type != proto.Accept || !hi.Parse(body) || e.isLate(h, &bufs[0]) || !e.mayReply(bufs) {
		return false
	}
	e.stats.Resets++
	port := e.portOf(h, &hi, e.link.Source(&bufs[0]))
	out := resetOf(h, e.now)
	out.Put(bufs[0].Data)
	e.replyInFrame(bufs, port, 0)
	return true
}

// handleAnswer handles an answer to the Connect of this attempt, in plaintext mode.
func (c *Conn) handleAnswer(h *proto.Header, body []byte) {
	var hi proto.Hello
	switch {
	case h.Type == proto.Versions:
		c.handleVersions(body)
		return
	case !hi.Parse(body):
		c.eng.stats.BadPackets++
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

// handleAccept stores the contents of Accept and schedules Ready, the last packet of the handshake.
func (c *Conn) handleAccept(h *proto.Header, hi *proto.Hello) {
	e := c.eng
	switch {
	case !validHello(hi):
		e.stats.BadPackets++
		return
	case c.dial.abandoned:
		c.setPeer(h, hi)
		c.finish(KindDisconnected, proto.Goodbye{})
		return
	case !hi.Plain(): // the peer keeps the connection until it gets a Close
		c.setPeer(h, hi)
		c.finish(KindRefused, proto.Goodbye{Reason: proto.ReasonOption})
		return
	}
	c.lastHeard = e.now
	c.recv.echo.stamp, c.recv.echo.arrivedAt = h.TS, e.now
	c.takeEcho(h)
	c.setPeer(h, hi)
	private := slices.Clone(hi.Private)
	c.peerData.Store(&private)
	c.readyPending = true
	c.schedule()
}

// handleReject ends the connection attempt. A Reject with ReasonNoListener is an exception, because the peer's program
// may be about to listen: such a Reject ends the attempt only if ListenGrace has passed since the first such Reject.
func (c *Conn) handleReject(hi *proto.Hello) {
	d := &c.dial
	if hi.Reason == proto.ReasonNoListener {
		if d.graceEnd == 0 {
			d.graceEnd = c.eng.now.Add(c.host.limits.ListenGrace)
		}
		if c.eng.now < d.graceEnd {
			if c.dial.opening != nil {
				c.restartAttempt()
			}
			return // the repeat of Connect is armed
		}
	}
	kind := KindRefused
	c.breakReason = givenByPeer(hi.Reason) &^ BreakByPeer
	if hi.Reason == proto.ReasonPeer {
		kind, c.breakReason = KindPeerRejected, 0
		private := slices.Clone(hi.Private)
		c.peerData.Store(&private)
	}
	c.end(kind, StatusFlushed)
}
