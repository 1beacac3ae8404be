package dat

import (
	"crypto/rand"
	"errors"

	"github.com/datxdp/datxdp/internal/handshake"
	"github.com/datxdp/datxdp/internal/identity"
	"github.com/datxdp/datxdp/wire"
)

var errNoSecret = errors.New("dat: the shared secret was dropped")

// identify finds out with which key the endpoint connects to peer, and completes peer.key, peer.own and peer.name. In plaintext mode
// it returns nil. s may be nil.
func (s *security) identify(peer *remote) (wire.Requester, error) {
	named := peer.key != (PublicKey{}) || peer.name != ""
	switch {
	case s == nil && named:
		return nil, fail(ErrInvalidParameter, "PeerKey or PeerName on an adapter in plaintext mode: open the adapter with key=FILE")
	case s == nil:
		return nil, nil
	}
	peer.learner = nil
	set := s.store.Current()
	r := &requester{own: set.Keys.Connect(), server: handshake.PublicKey(peer.key)}
	if peer.key == (PublicKey{}) {
		p, err := s.server(set.Policy, peer, r)
		switch {
		case err != nil:
			return nil, err
		case p != nil && p.ID().Form == handshake.NNpsk0:
			r.grant(s, p)
			return r, r.share(p)
		case r.server == handshake.PublicKey{}:
			peer.own = PublicKey(r.own.Public())
			peer.learner = &learner{requester: r, security: s, addr: peer.addr}
			return peer.learner, nil
		}
	}
	peer.key, peer.own, peer.name = PublicKey(r.server), PublicKey(r.own.Public()), ""
	r.keyID = r.server.ID()
	p := set.Policy.Find(identity.PublicID(r.server))
	if p == nil {
		return r, nil // the program has named the key
	}
	peer.name = p.String()
	r.grant(s, p)
	return r, s.alive(p)
}

// server finds out with which server r connects: a peer in the file of peers or, without a name and such a peer, a known
// server. r.server stays zero if nobody knows the server and it is to be trusted on first use.
func (s *security) server(file *identity.Policy, peer *remote, r *requester) (*identity.Peer, error) {
	p, err := lookup(file, peer)
	if err == nil {
		if err = s.alive(p); err == nil && p.ID().Form == handshake.IK {
			r.server = p.ID().Key
		}
		return p, err
	}
	if _, lines := file.FindAddress(peer.addr); s.known == nil || peer.name != "" || lines > 0 {
		return nil, err
	}
	if r.server, _, err = s.known.Find(peer.addr); err != nil {
		return nil, filesError(err)
	}
	return nil, nil
}

// alive returns an error if the time of a peer is over.
func (s *security) alive(p *identity.Peer) error {
	if p.Alive(s.now()) == identity.Expired {
		return fail(ErrInvalidParameter, "the time of the peer %q is over: expires= in its line of the file of peers", p)
	}
	return nil
}

// lookup finds the line of a peer in the file of peers by the name, or without a name by the address.
func lookup(file *identity.Policy, peer *remote) (*identity.Peer, error) {
	if peer.name != "" {
		if p := file.FindName(peer.name); p != nil {
			return p, nil
		}
		return nil, fail(ErrInvalidParameter, "the file of peers has no peer with the name %q", identity.Redact(peer.name))
	}
	p, n := file.FindAddress(peer.addr)
	if p != nil {
		return p, nil
	}
	return nil, fail(ErrInvalidParameter, "the adapter is in secure mode, and %d lines of the file of peers have the address %v: write from=%v into "+
		"the line of the peer, or set ConnectConfig.PeerKey or PeerName", n, peer.addr, peer.addr)
}

// requester implements wire.Requester: it makes the handshakes with one peer.
type requester struct {
	own    *handshake.PrivateKey
	server handshake.PublicKey
	shared *identity.Peer // the peer, if it has a shared secret; otherwise nil
	keyID  handshake.KeyID
	grants *grant // nil if the server has no line in the file of peers
}

var _ wire.Requester = (*requester)(nil)

// grant notes what the file of peers grants to the server.
func (r *requester) grant(s *security, p *identity.Peer) {
	r.grants = &grant{security: s, id: p.ID(), account: s.store.Account(p)}
}

// Grant implements wire.Requester.
func (r *requester) Grant() wire.Grant {
	if r.grants == nil {
		return nil
	}
	return r.grants
}

// share makes the requester use the shared secret of a peer.
func (r *requester) share(p *identity.Peer) error {
	var k handshake.SharedKey
	defer k.Wipe()
	if !p.Secret(&k) {
		return fail(ErrInvalidState, "%v", errNoSecret)
	}
	r.shared, r.keyID = p, k.ID()
	return nil
}

// Form implements wire.Requester.
func (r *requester) Form() (form byte, keyID [4]byte) {
	if r.shared != nil {
		return byte(handshake.NNpsk0), r.keyID
	}
	return byte(handshake.IK), r.keyID
}

// Keys implements wire.Requester.
func (r *requester) Keys() (own, server [32]byte) {
	if r.shared == nil {
		own, server = r.own.Public(), r.server
	}
	return own, server
}

// Request implements wire.Requester. It is called by the worker.
func (r *requester) Request(prologue, payload []byte) (message []byte, f wire.Finisher, err error) {
	t := handshake.Terms{Own: r.own, Server: r.server, Prologue: prologue}
	var secret handshake.SharedKey
	defer secret.Wipe()
	if r.shared != nil {
		if !r.shared.Secret(&secret) {
			return nil, nil, errNoSecret
		}
		t.Shared = &secret
	}
	h, message, err := handshake.Request(&t, rand.Reader, nil, payload)
	if err != nil {
		return nil, nil, err
	}
	return message, finisher{h}, nil
}

// finisher implements wire.Finisher.
type finisher struct{ handshake *handshake.Requester }

// Finish implements wire.Finisher.
func (f finisher) Finish(message []byte, send, receive *[32]byte) (payload []byte, err error) {
	var s handshake.Secrets
	defer s.Wipe()
	payload, err = f.handshake.Finish(nil, message, &s)
	*send, *receive = s.Send, s.Receive
	return payload, err
}

// Forget implements wire.Finisher.
func (f finisher) Forget() { f.handshake.Forget() }
