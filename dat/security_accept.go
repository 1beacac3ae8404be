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
func (s *security) Respond(from netip.Addr, qual uint64, form byte, keyID [4]byte, prologue, message []byte) (payload []byte, a wire.Answerer, err error) {
	payload, x, err := s.respond(from, form, keyID, prologue, message)
	if err == nil {
		err = x.admit(qual)
	}
	if err == nil {
		return payload, x, nil
	}
	why := wire.DeniedKey
	errors.As(err, &why)
	attrs := []any{"peer", from, "reason", why.String()}
	if x != nil {
		attrs = append(attrs, "key", PublicKey(x.handshake.Peer()).String(), "name", x.peer.String(), "qualifier", qual)
	}
	attrs = append(attrs, "hint", s.refusalHint(why))
	s.log.Warn("dat: handshake refused", attrs...)
	if x != nil && x.answers(why) {
		return payload, x, err
	}
	if x != nil {
		x.handshake.Forget()
	}
	return nil, nil, err
}

// respond reads message 1.
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
	a = &answerer{handshake: r, security: s, peer: peer, from: from}
	if t.Own != nil {
		a.own = t.Own.Public()
	}
	return payload, a, nil
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
	peer      *identity.Peer // nil if nobody has the requester's key
	from      netip.Addr
	own       handshake.PublicKey // of this host; 0 with a shared secret
	grant     *grant              // nil unless the requester is admitted
	lasting   bool                // the limit that stands against the request lasts
}

// admit makes the grant of the request. It returns a wire.Denial if the policy or a limit of the requester refuses it.
func (a *answerer) admit(qual uint64) error {
	now := a.security.now()
	if v := a.peer.Permit(a.from, qual, now); v != identity.Permitted {
		return denials[v]
	}
	account := a.security.store.Account(a.peer)
	if short := account.Connect(now); short != identity.NoShortage {
		a.lasting = short == identity.Lasting
		return wire.DeniedLimit
	}
	a.grant = &grant{a.security, a.peer.ID(), account, &inbound{a.from, qual}, true}
	return nil
}

// answers reports whether a requester that has proven its key is told that it was refused. Otherwise its Connects are
// dropped, so it tries again.
func (a *answerer) answers(why wire.Denial) bool {
	return why == wire.DeniedService || why == wire.DeniedLimit && a.lasting
}

// Peer implements wire.Answerer.
func (a *answerer) Peer() (key [32]byte, name string) { return a.handshake.Peer(), a.peer.String() }

// Own implements wire.Answerer.
func (a *answerer) Own() [32]byte { return a.own }

// Allows implements wire.Answerer.
func (a *answerer) Allows(qual uint64) bool {
	return a.peer.Permit(a.from, qual, a.security.now()) == identity.Permitted
}

// Grant implements wire.Answerer.
func (a *answerer) Grant() wire.Grant { return a.grant }

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
