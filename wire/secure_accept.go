package wire

import (
	"errors"
	"hash/maphash"
	"net/netip"
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
//   - a Connect of a known request gets the answer to it again, unless a job still reads it,
//   - a Connect without a valid cookie gets a Challenge, and no state is kept,
//   - a Connect that has made a request before gets a Challenge with another cookie, because the answer may have been lost,
//   - a Connect is dropped if the requester's address has too many half-open requests, or has used too many Connects, or if
//     there is no room for its job.
//
// A job then reads message 1. Until it is done, the request is half-open and has no service.
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
	key := requestKey{from: e.link.Source(&bufs[0]), cid: hi.CID, tag: hi.Tag, connect: maphash.Bytes(e.connectSeed, bufs[0].Data)}
	if r := e.requests[key]; r != nil {
		e.repeatAnswer(r)
		return false
	}
	fresh, other, ok := e.checkCookie(&key, h, hi)
	if !ok {
		return e.challenge(h, hi, bufs, fresh)
	}
	e.connects.turn(e.cookiePeriod())
	unused, room := e.connects.mayUse(key.connect, key.from.Addr())
	switch {
	case !unused:
		return e.challenge(h, hi, bufs, other)
	case !room || !e.admit(key.from.Addr()):
		e.stats.ConnRequestsDropped++
		return false
	}
	e.readRequest(e.newRequest(nil, key, e.link.Target(&bufs[0]), h, hi), hi, &n, bufs[0].Data)
	return false
}

// challenge answers a Connect with a Challenge.
func (e *Engine) challenge(h *proto.Header, hi *proto.Hello, bufs []link.Buf, cookie uint64) (kept bool) {
	e.stats.ConnRequestsChallenged++
	challenge := proto.Hello{Cookie: cookie}
	if key := e.host.security.ServerKey; hi.ServerKey != nil && key != nil {
		challenge.ServerKey = key()[:]
	}
	return e.replyHello(h, hi, bufs, proto.Challenge, challenge)
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
			r.OwnKey = a.Own()
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
// nil. The policy may have changed since the job began. A requester makes one request in an attempt: if r is another
// Connect of it, the answer to the first one is repeated.
func (e *Engine) takeRequest(r *Request, denied error) {
	connect := r.key
	e.connects.turn(e.cookiePeriod())
	e.connects.add(connect.connect, connect.from.Addr())
	e.unlist(r)
	r.key.from = netip.AddrPortFrom(connect.from.Addr(), r.From.Port()) // an attacker can copy a Connect with other source ports
	r.key.connect = e.identityHash(r)
	if first := e.requests[r.key]; first != nil {
		if len(first.aliases) < maxAliases {
			first.aliases = append(first.aliases, connect)
			e.list(first)
		}
		e.stats.ConnRequestsDropped++
		e.forget(r)
		e.repeatAnswer(first)
		return
	}
	r.aliases = append(r.aliases, connect)
	e.list(r)
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

// identityHash returns a hash of the identity of an authenticated requester: its public key or, with a shared secret, the
// ID of the secret.
func (e *Engine) identityHash(r *Request) uint64 {
	id := r.PeerKey
	if id == ([32]byte{}) {
		copy(id[:], r.sealed.keyID[:])
	}
	return maphash.Comparable(e.connectSeed, id)
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
