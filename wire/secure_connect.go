package wire

import (
	"slices"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

const (
	// maxOffers is the number of messages 1 of an attempt that are valid for an answer.
	maxOffers = 128
	// promptOffers is the number of messages 1 that an attempt makes without a pause. Between later ones there is
	// offerPause. So maxOffers are made in more than 10 s, for which the server waits for a confirmation: forged
	// Challenges do not invalidate the message 1 that the server has read.
	promptOffers = 4
	offerPause   = 100 * time.Millisecond
	// maxAliases is the number of messages 1 with valid cookies that a request has. A cookie is valid for two periods.
	maxAliases = 16
	// maxAnswers is the number of answers of an attempt that wait until another one was read.
	maxAnswers = 8
)

// opening is the handshake of a connection in secure mode.
type opening struct {
	secrets *secrets // the result; nil until message 2 was read

	// Active side.
	learner   KeyLearner  // not nil if the server's key is unknown; then only Challenges name one
	requester Requester   // for the key of the chosen Challenge; nil while there is none
	server    [32]byte    // that key; 0 if learner is nil
	offers    []*offer    // the newest ones, the newest last
	offeredAt Time        // when the newest one was begun
	drawn     uint32      // Challenges since the chosen one was last answered, of which one is chosen
	computing bool        // a job makes a message 1
	reading   *offer      // a job reads the answer to it
	answers   []answer    // other answers, in their order; empty unless a job reads one
	hint      BreakReason // last reason in a packet that nobody has authenticated

	// Passive side.
	answer *fixedPacket // Accept with message 2; nil until it is made
}

// answer is a message 2, which may be forged.
type answer struct {
	to      *offer
	message []byte
}

// offer is a message 1.
type offer struct {
	cookie    uint64    // cookie of its Connect
	server    [32]byte  // as in opening
	requester Requester // made it
	form      byte
	keyID     [proto.KeyIDSize]byte
	sent      *fixedPacket
	finisher  Finisher
}

func newOpening(r Requester) *opening {
	if l, ok := r.(KeyLearner); ok {
		return &opening{learner: l}
	}
	return &opening{requester: r}
}

// fixedPacket is a packet that is built once, and sent again without a change.
type fixedPacket struct {
	header proto.Header
	body   []byte
}

// sendFixed sends a packet. f may be nil, if the packet is not built yet.
func (e *Engine) sendFixed(path link.Path, flags link.Flags, f *fixedPacket) {
	var p packet
	if f != nil && e.begin(&p, path, proto.HeaderSize+len(f.body)+proto.TrailerSize, nil) {
		e.tx[p.firstFrame].Flags = flags
		copy(p.reserve(len(f.body)), f.body)
		p.finish(&f.header)
	}
}

// reason returns the reason that the consumer sees if the attempt times out. o may be nil.
func (o *opening) reason() BreakReason {
	switch {
	case o == nil:
		return 0
	case o.hint == 0 && len(o.offers) > 0:
		return BreakHandshake
	}
	return o.hint
}

// find returns the offer with a cookie for the server's key of the chosen Challenge, or nil.
func (o *opening) find(cookie uint64) *offer {
	for _, x := range o.offers {
		if x.cookie == cookie && x.server == o.server {
			return x
		}
	}
	return nil
}

// add adds an offer, in the place of the oldest one if there are maxOffers.
func (o *opening) add(x *offer) {
	if len(o.offers) == maxOffers {
		oldest := o.offers[0]
		oldest.forget(o)
		o.answers = slices.DeleteFunc(o.answers, func(a answer) bool { return a.to == oldest })
		o.offers = slices.Delete(o.offers, 0, 1)
	}
	o.offers = append(o.offers, x)
}

// forget ends the handshake of an offer, unless a job reads the answer to it.
func (x *offer) forget(o *opening) {
	if x != o.reading {
		x.finisher.Forget()
	}
}

// forgetOffers forgets all offers and the answers to them.
func (o *opening) forgetOffers() {
	for _, x := range o.offers {
		x.forget(o)
	}
	o.offers, o.answers = nil, nil
}

// endOpening ends the handshake of a connection. It does nothing in plaintext mode.
func (c *Conn) endOpening() {
	o := c.dial.opening
	if o == nil {
		return
	}
	o.secrets.wipe()
	o.forgetOffers()
	c.dial.opening = nil
}

// sendSecureConnect sends Connect in secure mode and arms its repeat. Before the first Challenge, Connect has neither
// private data nor a message 1. A key that was learned may be forged, so the server is asked again until it has answered.
func (c *Conn) sendSecureConnect() {
	d, o := &c.dial, c.dial.opening
	if d.cookie == 0 || o.learner != nil && len(o.offers) > 0 {
		c.sendQuestion()
	}
	switch x := o.find(d.cookie); {
	case d.cookie == 0, o.computing && x == nil:
	case x != nil:
		o.drawn = 0
		c.eng.sendFixed(c.path, 0, x.sent)
	case o.mayOffer(c.eng.now):
		c.makeOffer()
	default:
		c.eng.sendFixed(c.path, 0, o.offers[len(o.offers)-1].sent)
	}
	c.armRetry()
}

// mayOffer reports whether the attempt may make another message 1.
func (o *opening) mayOffer(now Time) bool {
	return len(o.offers) < promptOffers || now.Sub(o.offeredAt) >= offerPause
}

// choose reports whether a Challenge takes the place of those that have come since one was answered. Each of them has the
// same chance: an attacker who forges a Challenge after each real one does not have the last word. A Challenge that was
// answered already may be chosen too: its message 1 may be lost, and is then sent again.
func (o *opening) choose(h *Host) bool {
	o.drawn++
	return h.random32()%o.drawn == 0
}

// secureConnect returns a Connect without a message 1.
func (c *Conn) secureConnect() (proto.Header, proto.Hello) {
	hi := c.hello(nil)
	hi.Qual, hi.Port, hi.Cookie = c.dial.qual, c.dial.port, c.dial.cookie
	h := c.newHeader(proto.Connect, c.sent.Nxt)
	h.CID, h.Tag = 0, 0
	return h, hi
}

// makeOffer makes a Connect with message 1 for the cookie of the last Challenge. A job computes the message, and the
// Connect leaves after it.
func (c *Conn) makeOffer() {
	e, o, private, server := c.eng, c.dial.opening, c.dial.private, c.peerAddr
	h, hi := c.secureConnect()
	requester := o.requester
	form, keyID := requester.Form()
	hi.Noise = noiseHead(form, keyID, proto.Connect)
	hi.Private = make([]byte, len(private)+proto.SealSize)
	x := &offer{cookie: hi.Cookie, server: o.server, requester: requester, form: form, keyID: keyID, sent: &fixedPacket{header: h}}
	var err error
	o.offeredAt, o.drawn = e.now, 0
	o.computing = e.submit(&Job{
		compute: func() {
			raw := make([]byte, proto.HeaderSize+hi.Size())
			h.Put(raw)
			hi.Put(raw[proto.HeaderSize:])
			var message []byte
			if message, x.finisher, err = requester.Request(proto.AppendPrologue(nil, raw, server), private); err == nil {
				x.sent.body, err = putMessage(&hi, message)
			}
		},
		finish: func() {
			o.computing = false
			switch {
			case x.finisher == nil: // it failed; the repeat of Connect tries again
				c.refuseKey(x)
			case err != nil || c.dial.opening != o:
				x.finisher.Forget()
			default:
				o.add(x)
				e.sendFixed(c.path, 0, x.sent)
			}
		},
	})
}

// noiseHead returns the value of a Noise option with room for a head.
func noiseHead(form byte, keyID [proto.KeyIDSize]byte, t proto.Type) []byte {
	n := proto.Noise{Form: proto.Form(form & 0xf), Cipher: proto.Cipher(form >> 4), KeyID: keyID}
	n.Head = make([]byte, n.Form.HeadSize(t))
	return n.Append(nil)
}

// putMessage writes a Noise message into a Hello, which has room for it, and returns the Hello as bytes.
func putMessage(hi *proto.Hello, message []byte) ([]byte, error) {
	head := hi.Noise[proto.NoiseFixed:]
	if len(message) != len(head)+len(hi.Private) {
		return nil, errMessage
	}
	copy(hi.Private, message[copy(head, message):])
	body := make([]byte, hi.Size())
	hi.Put(body)
	return body, nil
}

// handleSecureAnswer handles an answer to Connect in secure mode: Accept, Reject, Challenge or Versions. An answer
// without a message 2 is a hint.
func (c *Conn) handleSecureAnswer(h *proto.Header, body []byte) {
	o := c.dial.opening
	var hi proto.Hello
	switch {
	case h.Type == proto.Versions:
		o.hint = BreakVersion
	case !hi.Parse(body):
		c.eng.stats.BadPackets++
	case h.Type == proto.Challenge && c.dial.abandoned: // repeat nothing
	case h.Type == proto.Challenge:
		c.handleSecureChallenge(&hi)
	case hi.Noise != nil:
		c.readAnswer(h, &hi)
	case h.Type == proto.Reject:
		o.hint = givenByPeer(hi.Reason) &^ BreakByPeer
	default:
		c.eng.stats.BadPackets++
	}
}

// readAnswer reads message 2 in an Accept or a Reject. While a job reads another one, the answer waits: that one may be
// forged.
func (c *Conn) readAnswer(h *proto.Header, hi *proto.Hello) {
	e, o := c.eng, c.dial.opening
	var n proto.Noise
	if !n.Parse(hi.Noise, h.Type) {
		e.stats.BadPackets++
		return
	}
	expected := false
	for _, x := range o.offers {
		if !x.answeredBy(hi, &n) {
			continue
		}
		if expected = true; len(o.answers) < maxAnswers {
			o.answers = append(o.answers, answer{x, slices.Concat(n.Head, hi.Private)})
		}
	}
	if !expected {
		e.stats.Forged++
		return
	}
	c.readNextAnswer()
}

// readNextAnswer makes a job that opens the oldest answer, unless there is a job.
func (c *Conn) readNextAnswer() {
	e, o := c.eng, c.dial.opening
	if o.reading != nil || len(o.answers) == 0 {
		return
	}
	x, message := o.answers[0].to, o.answers[0].message
	o.answers = slices.Delete(o.answers, 0, 1)
	s := new(secrets)
	var inner []byte
	var err error
	o.reading = x
	ok := e.submit(&Job{
		compute: func() { inner, err = x.finish(e.host.security, message, s) },
		finish: func() {
			if o.reading = nil; !slices.Contains(o.offers, x) {
				x.finisher.Forget()
			}
			switch {
			case c.dial.opening != o:
			case err != nil:
				e.stats.Unopened++
				c.readNextAnswer()
			default:
				o.requester = x.requester
				c.takeAnswer(inner, s)
			}
			s.wipe()
		},
	})
	if !ok {
		o.reading = nil
	}
}

// finish reads message 2 and returns its payload.
func (x *offer) finish(security *Security, message []byte, s *secrets) (payload []byte, err error) {
	payload, err = x.finisher.Finish(message, &s.send, &s.receive)
	if err == nil {
		security.logKeys(payload, &s.send, &s.receive)
	}
	return payload, err
}

// answeredBy reports whether an answer repeats cookie, form, cipher and key ID.
func (x *offer) answeredBy(hi *proto.Hello, n *proto.Noise) bool {
	return hi.Cookie == x.cookie && hi.Noise[0] == x.form && n.KeyID == x.keyID
}

// takeAnswer handles the Accept or Reject in the payload of message 2. The packet around it may have had the other type.
func (c *Conn) takeAnswer(packet []byte, s *secrets) {
	var h proto.Header
	var hi proto.Hello
	if !h.Parse(packet) || h.Type != proto.Accept && h.Type != proto.Reject || h.CID != c.cid || h.Tag != c.tag || h.Ack != c.sent.Una ||
		!hi.Parse(packet[proto.HeaderSize:]) || hi.Noise != nil {
		c.eng.stats.BadPackets++
		return
	}
	switch {
	case h.Type == proto.Reject && c.dial.abandoned:
		c.end(KindRefused, StatusFlushed)
		return
	case h.Type == proto.Reject:
		c.handleReject(&hi)
		return
	}
	c.dial.opening.secrets = s
	c.handleAccept(&h, &hi)
	if c.peerKnown {
		c.recv.echo = echo{} // the packet may be a repeat, so its time stamp gives no sample of the round trip
		c.endOpening()
	}
}

// restartAttempt begins an attempt anew, because the peer has answered this one, and a cookie makes only one request. The
// next Connect leaves at the next repeat.
func (c *Conn) restartAttempt() {
	c.dial.opening.forgetOffers()
	c.dial.opening.drawn = 0
	c.tag, c.dial.cookie, c.dial.challenges = c.host.newTag(), 0, 0
}
