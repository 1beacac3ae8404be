package wire

import (
	"io"
	"net/netip"

	"github.com/datxdp/datxdp/internal/handshake"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// noise makes the handshakes of a test with package handshake. All hosts of a test have the same keys, unless the test
// changes them.
type noise struct {
	terms  handshake.Terms
	random io.Reader
	model  *handshakeModel
	deny   func(from netip.Addr, peer [32]byte) bool // nil: nobody
	bar    func(qual uint64) bool                    // services that nobody may reach; nil: none
	grant  func() Grant                              // makes the grants; nil: everything is granted
}

// testKey and testSecret are the keys of all hosts. strangeKey and strangeSecret are those of nobody.
var (
	testKey, strangeKey       = keyOf("thirty-two bytes of a secret key"), keyOf("another thirty-two bytes, secret")
	testSecret, strangeSecret = &handshake.SharedKey{1, 2, 3}, &handshake.SharedKey{9}
)

func keyOf(secret string) *handshake.PrivateKey {
	k, err := handshake.NewPrivateKey([]byte(secret))
	if err != nil {
		panic(err)
	}
	return k
}

// newNoise returns the handshakes of a host of the world: IK, or NNpsk0 if psk is true.
func newNoise(psk bool, random io.Reader) *noise {
	if psk {
		return &noise{terms: handshake.Terms{Shared: testSecret}, random: random}
	}
	return &noise{terms: handshake.Terms{Own: testKey, Server: testKey.Public()}, random: random}
}

// Form implements Requester.
func (n *noise) Form() (form byte, keyID [4]byte) {
	if n.terms.Shared != nil {
		return byte(handshake.NNpsk0), n.terms.Shared.ID()
	}
	return byte(handshake.IK), n.terms.Server.ID()
}

// Keys implements Requester.
func (n *noise) Keys() (own, server [32]byte) {
	if n.terms.Shared == nil {
		own, server = n.terms.Own.Public(), n.terms.Server
	}
	return own, server
}

// Request implements Requester.
func (n *noise) Request(prologue, payload []byte) (message []byte, f Finisher, err error) {
	t := n.terms
	t.Prologue = prologue
	r, message, err := handshake.Request(&t, n.random, nil, payload)
	if err != nil {
		return nil, nil, err
	}
	n.model.wrote(prologue, message, payload)
	return message, finisher{r, n}, nil
}

type finisher struct {
	*handshake.Requester
	n *noise
}

// Finish implements Finisher.
func (f finisher) Finish(message []byte, send, receive *[32]byte) (payload []byte, err error) {
	var s handshake.Secrets
	payload, err = f.Requester.Finish(nil, message, &s)
	*send, *receive = s.Send, s.Receive
	s.Wipe()
	if err == nil {
		f.n.model.read(nil, message, payload)
	}
	return payload, err
}

// Respond implements Responder.
func (n *noise) Respond(from netip.Addr, qual uint64, form byte, keyID [proto.KeyIDSize]byte, prologue, message []byte) (payload []byte, a Answerer, err error) {
	t := n.terms
	t.Server = testKey.Public()
	if t.Own != nil {
		t.Server = t.Own.Public()
	}
	own := noise{terms: t}
	if f, id := own.Form(); f != form || id != keyID {
		return nil, nil, DeniedKey
	}
	t.Prologue = prologue
	r, payload, err := handshake.Respond(&t, nil, message)
	switch {
	case err != nil:
		return nil, nil, err
	case n.deny != nil && n.deny(from, r.Peer()):
		r.Forget()
		return nil, nil, DeniedUnknown
	}
	n.model.read(prologue, message, payload)
	if n.bar != nil && n.bar(qual) {
		return payload, answerer{r, n}, DeniedService
	}
	return payload, answerer{r, n}, nil
}

type answerer struct {
	*handshake.Responder
	n *noise
}

// Peer implements Answerer.
func (a answerer) Peer() (key [32]byte, name string) { return a.Responder.Peer(), "" }

// Own implements Answerer.
func (a answerer) Own() (key [32]byte) {
	if a.n.terms.Own != nil {
		key = a.n.terms.Own.Public()
	}
	return key
}

// Allows implements Answerer.
func (a answerer) Allows(qual uint64) bool { return a.n.bar == nil || !a.n.bar(qual) }

// Grant implements Answerer.
func (a answerer) Grant() Grant { return a.n.newGrant() }

// Grant implements Requester.
func (n *noise) Grant() Grant { return n.newGrant() }

func (n *noise) newGrant() Grant {
	if n.grant == nil {
		return nil
	}
	return n.grant()
}

// Reply implements Answerer.
func (a answerer) Reply(payload []byte, send, receive *[32]byte) (message []byte, err error) {
	var s handshake.Secrets
	message, err = a.Responder.Reply(a.n.random, nil, payload, &s)
	*send, *receive = s.Send, s.Receive
	s.Wipe()
	if err == nil {
		a.n.model.wrote(nil, message, payload)
	}
	return message, err
}

// learner is a Requester that does not know the server's key.
type learner struct {
	*noise
	learned [][32]byte // the keys that it was given
}

// Learn implements KeyLearner.
func (l *learner) Learn(key [32]byte) Requester {
	l.learned = append(l.learned, key)
	n := *l.noise
	n.terms.Server = key
	return &n
}

// knowingNoise returns the handshakes of a host with a private key, with a server with another one.
func knowingNoise(own, server []byte, random io.Reader) *noise {
	return &noise{terms: handshake.Terms{Own: keyOf(string(own)), Server: keyOf(string(server)).Public()}, random: random}
}

// sharingNoise returns the handshakes of a host with a shared secret.
func sharingNoise(secret []byte, random io.Reader) *noise {
	shared := handshake.SharedKey(secret)
	return &noise{terms: handshake.Terms{Shared: &shared}, random: random}
}
