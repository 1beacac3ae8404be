package dat

import (
	"errors"
	"net/netip"
	"sync/atomic"

	"github.com/datxdp/datxdp/internal/handshake"
	"github.com/datxdp/datxdp/internal/identity"
	"github.com/datxdp/datxdp/wire"
)

// learner is a requester that does not know the server's key: trust on first use (Security.KnownFile). It takes keys from
// Challenges, which anybody on the path can forge. A handshake then proves that the server has the private key, and only
// then the key is added to the file of known servers.
type learner struct {
	*requester
	security *security
	addr     netip.Addr
	proven   atomic.Pointer[handshake.PublicKey] // the key, once it is in the file
}

var _ wire.KeyLearner = (*learner)(nil)

// Learn implements wire.KeyLearner.
func (l *learner) Learn(key [32]byte) wire.Requester {
	r := *l.requester
	r.server, r.keyID = key, handshake.PublicKey(key).ID()
	return &learning{requester: &r, of: l}
}

// learning is a requester with a key that is not proven yet.
type learning struct {
	*requester
	of *learner
}

// Request implements wire.Requester. It is called by the worker.
func (l *learning) Request(prologue, payload []byte) (message []byte, f wire.Finisher, err error) {
	message, f, err = l.requester.Request(prologue, payload)
	if err != nil {
		return nil, nil, err
	}
	return message, learned{f, l}, nil
}

// learned is the handshake of a requester that is learning.
type learned struct {
	wire.Finisher
	by *learning
}

// Finish implements wire.Finisher. The server has proven its key when the handshake is complete.
func (f learned) Finish(message []byte, send, receive *[32]byte) (payload []byte, err error) {
	payload, err = f.Finisher.Finish(message, send, receive)
	if err == nil {
		err = f.by.of.remember(f.by.server)
	}
	if err != nil {
		*send, *receive = [32]byte{}, [32]byte{}
		return nil, err
	}
	return payload, nil
}

// errListed: trust on first use would give a peer with a line more than its line does.
var errListed = errors.New("the server's key has a line in the file of peers: write from= with this address into it")

// remember adds the server's key to the file of known servers. A server that cannot be remembered is not trusted.
func (l *learner) remember(key handshake.PublicKey) error {
	s := l.security
	err := errListed
	if s.store.Current().Policy.Find(identity.PublicID(key)) == nil {
		err = s.known.Add(l.addr, key)
	}
	attrs := []any{"peer", l.addr, "key", PublicKey(key).String(), "file", s.known.Name()}
	if err != nil {
		s.log.Warn("dat: a server is not trusted on first use", append(attrs, "error", err)...)
		return err
	}
	if l.proven.Swap(&key) == nil {
		s.log.Warn("dat: a server is trusted on first use", attrs...)
	}
	return nil
}

// peerKey returns the public key of the peer. It is zero with a shared secret, and until a handshake has proven the key of
// an unknown server.
func (r *remote) peerKey() PublicKey {
	if r.learner != nil {
		if key := r.learner.proven.Load(); key != nil {
			return PublicKey(*key)
		}
	}
	return r.key
}
