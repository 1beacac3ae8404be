package wire

import (
	"slices"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// secure makes the connection receive a packet in the form of secure mode: sealed, or as the payload of message 2. It reports
// false if the packet has no such form, or if the peer has no keys for it.
func (z *fuzzed) secure(h *proto.Header, body []byte) bool {
	switch {
	case h.Type == proto.Accept || h.Type == proto.Reject:
		return z.answer(h, body)
	case !h.Type.Sealed():
		return false
	}
	s := z.own
	if s == nil && z.peer.keys != nil {
		s = z.peer.keys.Session
	}
	if s == nil {
		return false
	}
	raw := make([]byte, proto.HeaderSize, proto.HeaderSize+len(body)+seal.Overhead)
	h.Put(raw)
	raw, ok := s.Seal(append(raw, body...), Time(z.w.net.Now()))
	if ok {
		z.w.injectRaw(z.o, z.v, raw)
	}
	return ok
}

// answer answers the last message 1 of a connection attempt.
func (z *fuzzed) answer(h *proto.Header, body []byte) bool {
	o := z.c.dial.opening
	if o == nil || len(o.offers) == 0 || len(body) > 500 {
		return false
	}
	x := o.offers[len(o.offers)-1]
	connect := packetOf(x.sent.header, x.sent.body)
	hi := helloIn(z.t, connect)
	var head proto.Noise
	if !head.Parse(hi.Noise, proto.Connect) {
		z.t.Fatal("a Connect without a message 1")
	}
	n := *z.w.noise
	n.model = nil // the genuine server may read the message too
	_, a, err := n.Respond(z.o.addr.Addr(), hi.Qual, hi.Noise[0], head.KeyID, proto.AppendPrologue(nil, connect, z.c.peerAddr), slices.Concat(head.Head, hi.Private))
	if err != nil {
		z.t.Fatal(err)
	}
	payload := make([]byte, proto.HeaderSize)
	h.Put(payload)
	payload = append(payload, body...)
	s := new(secrets)
	message, err := a.Reply(payload, &s.send, &s.receive)
	if err != nil {
		z.t.Fatal(err)
	}
	z.w.noise.model.wrote(nil, message, payload)
	outer := proto.Hello{Cookie: x.cookie, Noise: noiseHead(hi.Noise[0], head.KeyID, h.Type), Private: make([]byte, len(payload)+proto.SealSize)}
	if body, err = putMessage(&outer, message); err != nil {
		z.t.Fatal(err)
	}
	if z.own, err = seal.New(&seal.Config{Send: &s.send, Receive: &s.receive, Limits: seal.LimitsFor(1500), Cipher: z.w.model.newCipher}, Time(z.w.net.Now())); err != nil {
		z.t.Fatal(err)
	}
	z.w.inject(z.o, z.v, &proto.Header{Type: h.Type, CID: h.CID, Ack: h.Ack, TS: h.TS, Tag: h.Tag}, body)
	return true
}
