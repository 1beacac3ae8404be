package wire

import (
	"errors"
	"hash/maphash"
	"slices"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// errMessage: the Requester or the Answerer has made a message of the wrong length.
var errMessage = errors.New("wire: a Noise message has the wrong length")

// sealedRequest is the handshake of a Request in secure mode.
type sealedRequest struct {
	cookie   uint64 // cookie of the Connect
	form     byte
	keyID    [proto.KeyIDSize]byte
	mtu      uint32   // largest packet that the requester can receive
	answerer Answerer // nil until message 1 was read, and once message 2 is being made
}

// forget ends a handshake that is not answered. s may be nil.
func (s *sealedRequest) forget() {
	if s != nil && s.answerer != nil {
		s.answerer.Forget()
		s.answerer = nil
	}
}

// allows reports whether the requester may reach a service. s may be nil.
func (s *sealedRequest) allows(qual uint64) bool {
	return s == nil || s.answerer == nil || s.answerer.Allows(qual)
}

// handleSecureConnect handles a connection request in secure mode. It has the place of handleConnect, which has parsed
// the Hello and checked it. The first check that fails decides:
//   - a Connect with a cookie needs the Noise option,
//   - a Connect of a known request gets the answer to it again,
//   - a Connect without a valid cookie gets a Challenge, and no state is kept,
//   - a Connect is dropped if a job reads the same one, if its cookie has made a request before, if the requester's address is blocked or has too many
//     half-open requests, or if there is no room for its job.
//
// A job then reads message 1. Until it is done, the request is half-open and has no service, and other Connects of the
// attempt are read too: an attacker on the path may have sent this one.
func (e *Engine) handleSecureConnect(h *proto.Header, hi *proto.Hello, bufs []link.Buf) (kept bool) {
	var n proto.Noise
	switch {
	case hi.Noise != nil:
		if most := proto.MaxPrivateData + proto.SealSize; !n.Parse(hi.Noise, proto.Connect) || len(hi.Private) < proto.SealSize || len(hi.Private) > most {
			e.stats.BadPackets++
			return false
		}
	case hi.Cookie != 0:
		return e.refuse(h, hi, bufs, proto.ReasonSecure)
	}
	key := requestKey{from: e.link.Source(&bufs[0]), cid: hi.CID, tag: hi.Tag}
	if r := e.requests[key]; r != nil {
		e.repeatAnswer(r)
		return false
	}
	fresh, ok := e.checkCookie(&key, h, hi)
	if !ok {
		e.stats.ConnRequestsChallenged++
		challenge := proto.Hello{Cookie: fresh}
		if key := e.host.security.ServerKey; hi.ServerKey != nil && key != nil {
			challenge.ServerKey = key[:]
		}
		return e.replyHello(h, hi, bufs, proto.Challenge, challenge)
	}
	if key.connect = maphash.Bytes(e.connectSeed, bufs[0].Data); e.requests[key] != nil {
		return false
	}
	e.cookies.turn(e.cookiePeriod())
	if unused, room := e.cookies.mayUse(hi.Cookie, key.from.Addr()); !unused || !room ||
		e.keyGuesses.blocked(key.from.Addr(), e.now) || !e.admit(key.from.Addr()) {
		e.stats.ConnRequestsDropped++
		return false
	}
	e.readRequest(e.newRequest(nil, key, e.link.Target(&bufs[0]), h, hi), hi, &n, bufs[0].Data)
	return false
}

// readRequest makes a job that reads message 1 of a Connect.
func (e *Engine) readRequest(r *Request, hi *proto.Hello, n *proto.Noise, connect []byte) {
	x := &sealedRequest{cookie: hi.Cookie, form: hi.Noise[0], keyID: n.KeyID, mtu: hi.MTU}
	r.sealed, r.Private = x, nil
	prologue, message := proto.AppendPrologue(nil, connect, addressOf(r.To)), slices.Concat(n.Head, hi.Private)
	from, qual, responder := addressOf(r.key.from.Addr()), r.Qual, e.host.security.Responder
	var payload []byte
	var a Answerer
	var err error
	ok := e.submit(&Job{
		From:    from,
		compute: func() { payload, a, err = responder.Respond(from, qual, x.form, x.keyID, prologue, message) },
		finish: func() {
			if a == nil {
				e.denyRequest(r, denialOf(err))
				return
			}
			x.answerer, r.Private = a, payload
			if err == nil {
				r.permit = newPermit(a.Grant())
			}
			if r.gone {
				releasePermit(&r.permit)
				x.forget()
				return
			}
			r.PeerKey, r.PeerName = a.Peer()
			e.takeRequest(r, err)
		},
	})
	if !ok {
		e.stats.HandshakesDenied[DeniedBusy]++
		e.stats.ConnRequestsDropped++
		e.forget(r)
	}
}

// denyRequest drops a request whose message 1 does not open, or whose sender must not connect. The sender gets no answer,
// so it does not learn the reason. Its address is not blocked: others may use it, and whoever is on the path can send in
// its name. The runner bounds the time that messages 1 of an address take.
func (e *Engine) denyRequest(r *Request, why Denial) {
	e.stats.HandshakesDenied[why]++
	if why == DeniedKey {
		e.stats.Unopened++
	}
	if !r.gone {
		e.forget(r)
	}
}

// takeRequest delivers an authenticated request to its service, or rejects it: denied is why the policy refuses it, or
// nil. An attempt makes one request: takeRequest drops r if another Connect of the attempt was read before. The policy may
// have changed since the job began.
func (e *Engine) takeRequest(r *Request, denied error) {
	delete(e.requests, r.key)
	r.key.connect = 0
	e.cookies.turn(e.cookiePeriod())
	if unused, _ := e.cookies.mayUse(r.sealed.cookie, r.key.from.Addr()); !unused || e.requests[r.key] != nil {
		e.stats.ConnRequestsDropped++
		e.forget(r)
		return
	}
	e.requests[r.key] = r
	e.cookies.add(r.sealed.cookie, r.key.from.Addr())
	s := e.host.service(r.Qual)
	if denied == nil {
		_, denied = r.permit.rights()
	}
	switch {
	case denied != nil:
		why := denialOf(denied)
		e.stats.HandshakesDenied[why]++
		e.refuseRequest(r, why.reason())
	case s == nil:
		e.refuseRequest(r, proto.ReasonNoListener)
	case !e.conns.hasPlace(r.key.from.Addr()):
		e.refuseRequest(r, proto.ReasonResources)
	case r.connect.hello.Refused != 0:
		e.refuseRequest(r, proto.ReasonOption)
	default:
		if r.service = s; !s.Arrive(r) {
			e.refuseRequest(r, proto.ReasonBacklog)
		}
	}
}

// refuseRequest rejects an authenticated request that reaches no consumer.
func (e *Engine) refuseRequest(r *Request, why proto.Reason) {
	path, err := e.link.ResolveFrom(r.To, r.From, uint16(r.Port))
	if err != nil {
		e.forget(r)
		return
	}
	_ = e.reject(r, path, why, nil) // it fails only for requests that were answered before
}

// sealAccept makes Accept. It leaves when message 2 is computed.
func (c *Conn) sealAccept(r *sealedRequest) {
	e, o := c.eng, &opening{}
	c.dial.opening = o
	h, hi := c.newHeader(proto.Accept, c.sent.Nxt), c.hello(c.dial.private)
	h.Echo = 0
	e.reply(r, &h, &hi, func(f *fixedPacket, s *secrets) {
		if c.dial.opening == o && f != nil {
			c.makeKeys(s, r.mtu)
			o.answer = f
			c.sendAccept()
		}
	})
}

// sealReject makes the Reject of a rejected request. It leaves when message 2 is computed.
func (e *Engine) sealReject(r *Request) {
	x := r.rejection
	h := proto.Header{Type: proto.Reject, CID: r.key.cid, Ack: x.psn, TS: e.now.Stamp(), Tag: r.key.tag}
	e.reply(r.sealed, &h, &x.body, func(f *fixedPacket, _ *secrets) {
		if e.requests[r.key] == r && f != nil {
			x.sent = f
			e.sendReject(r)
		}
	})
}

// reply makes the packet whose message 2 has the given header and Hello as its payload. done gets nil if that fails.
func (e *Engine) reply(r *sealedRequest, h *proto.Header, hi *proto.Hello, done func(*fixedPacket, *secrets)) {
	payload := make([]byte, proto.HeaderSize+hi.Size())
	h.Put(payload)
	hi.Put(payload[proto.HeaderSize:])
	f := &fixedPacket{header: proto.Header{Type: h.Type, CID: h.CID, Ack: h.Ack, TS: h.TS, Tag: h.Tag}}
	outer := proto.Hello{Cookie: r.cookie, Noise: noiseHead(r.form, r.keyID, h.Type), Private: make([]byte, len(payload)+proto.SealSize)}
	a, s := r.answerer, new(secrets)
	r.answerer = nil
	var err error
	ok := e.submit(&Job{
		compute: func() {
			var message []byte
			if message, err = a.Reply(payload, &s.send, &s.receive); err == nil {
				f.body, err = putMessage(&outer, message)
				e.host.security.logKeys(payload, &s.receive, &s.send)
			}
		},
		finish: func() {
			if err != nil {
				f = nil
			}
			done(f, s)
			s.wipe()
		},
	})
	if !ok {
		a.Forget()
		done(nil, s)
	}
}
