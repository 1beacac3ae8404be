package dat

import (
	"crypto/rand"
	"errors"
	"net/netip"

	"github.com/datxdp/datxdp/internal/handshake"
	"github.com/datxdp/datxdp/internal/identity"
	"github.com/datxdp/datxdp/wire"
)

var _ wire.Responder = (*security)(nil)

// Respond implements wire.Responder. It is called by the worker. It logs whom it refuses, and why.
func (s *security) Respond(from netip.Addr, form byte, keyID [4]byte, prologue, message []byte) (payload []byte, a wire.Answerer, err error) {
	payload, x, err := s.respond(from, form, keyID, prologue, message)
	if err == nil {
		return payload, x, nil
	}
	why := wire.DeniedKey
	var who PublicKey
	errors.As(err, &why)
	if x != nil {
		who = PublicKey(x.handshake.Peer())
	}
	s.log.Warn("dat: handshake refused", "peer", from, "reason", why.String(), "key", who.String())
	return nil, nil, err
}

// respond answers message 1. If it returns an error and an answerer, the requester has proven its key, and the handshake is over.
func (s *security) respond(from netip.Addr, form byte, keyID [4]byte, prologue, message []byte) (payload []byte, a *answerer, err error) {
	set := s.store.Current()
	t := handshake.Terms{Prologue: prologue}
	var secret handshake.SharedKey
	defer secret.Wipe()
	var peer *identity.Peer
	switch handshake.Form(form) {
	case handshake.IK:
		if t.Own = set.Keys.Find(keyID); t.Own == nil {
			return nil, nil, wire.DeniedKey
		}
	case handshake.NNpsk0:
		if peer = set.Policy.FindShared(keyID); peer == nil || !peer.Secret(&secret) {
			return nil, nil, wire.DeniedKey
		}
		t.Shared = &secret
	default:
		return nil, nil, wire.DeniedKey
	}
	r, payload, err := handshake.Respond(&t, nil, message)
	if err != nil {
		return nil, nil, err
	}
	if t.Shared == nil {
		peer = set.Policy.Find(identity.PublicID(r.Peer()))
	}
	x := &answerer{r, s, peer, from}
	if v := x.permit(0); v != identity.Permitted && v != identity.WrongService { // Allows checks the service
		r.Forget()
		return nil, x, denials[v]
	}
	return payload, x, nil
}

// denials maps the refusals of package identity.
var denials = [identity.Verdicts]wire.Denial{
	identity.Unknown: wire.DeniedUnknown, identity.Expired: wire.DeniedExpired,
	identity.WrongAddress: wire.DeniedAddress, identity.WrongService: wire.DeniedService,
}

// answerer implements wire.Answerer.
type answerer struct {
	handshake *handshake.Responder
	security  *security
	peer      *identity.Peer
	from      netip.Addr
}

func (a *answerer) permit(service uint64) identity.Verdict {
	_, v := a.peer.Permit(a.from, service, a.security.now())
	return v
}

// Peer implements wire.Answerer.
func (a *answerer) Peer() (key [32]byte, name string) { return a.handshake.Peer(), a.peer.String() }

// Allows implements wire.Answerer.
func (a *answerer) Allows(qual uint64) bool { return a.permit(qual) == identity.Permitted }

// Reply implements wire.Answerer.
func (a *answerer) Reply(payload []byte, send, receive *[32]byte) (message []byte, err error) {
	var s handshake.Secrets
	defer s.Wipe()
	message, err = a.handshake.Reply(rand.Reader, nil, payload, &s)
	*send, *receive = s.Send, s.Receive
	return message, err
}

// Forget implements wire.Answerer.
func (a *answerer) Forget() { a.handshake.Forget() }
