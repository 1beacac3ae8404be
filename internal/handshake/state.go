package handshake

import (
	"io"

	"github.com/flynn/noise"
)

// Terms are the keys of a handshake and the data that both ends must agree on.
type Terms struct {
	// Own is the key of this end, for IK.
	Own *PrivateKey
	// Server is the key of the server, for IK. Respond ignores it.
	Server PublicKey
	// Shared selects NNpsk0 if it is not nil. Then Own and Server have no meaning.
	Shared *SharedKey
	// Prologue is data that both ends know. The handshake fails if it differs.
	Prologue []byte
}

// Form returns the pattern.
func (t *Terms) Form() Form {
	if t.Shared != nil {
		return NNpsk0
	}
	return IK
}

// state is a handshake of either end.
type state struct {
	form  Form
	noise *noise.HandshakeState // nil if the handshake is over
	keys  exchange
}

func (s *state) start(t *Terms, initiator bool, random io.Reader) error {
	s.form, s.keys = t.Form(), exchange{random: random}
	c := noise.Config{
		CipherSuite: noise.NewCipherSuite(&s.keys, noise.CipherAESGCM, noise.HashSHA256),
		Initiator:   initiator,
		Prologue:    t.Prologue,
	}
	switch {
	case s.form == NNpsk0:
		c.Pattern, c.PresharedKey = noise.HandshakeNN, t.Shared[:]
	case t.Own == nil:
		return ErrLength
	default:
		c.Pattern = noise.HandshakeIK
		s.keys.static = t.Own.key
		c.StaticKeypair = noise.DHKey{Private: staticKey, Public: t.Own.public[:]}
		if initiator {
			c.PeerStatic = t.Server[:]
		}
	}
	var err error
	s.noise, err = noise.NewHandshakeState(c)
	return err
}

// write appends the own message to out. first and second are nil before the end of the handshake.
func (s *state) write(out, payload []byte) (message []byte, first, second *noise.CipherState, err error) {
	if len(payload) > MaxPayload {
		return nil, nil, nil, ErrLength
	}
	message, first, second, err = s.noise.WriteMessage(out, payload)
	weak := s.keys.endMessage()
	switch {
	case err != nil:
		s.end()
		return nil, nil, nil, err
	case weak:
		s.end()
		return nil, nil, nil, ErrAuth
	}
	return message, first, second, nil
}

// read appends the payload of the peer's message to out. If the message does not authenticate, the state is as before.
func (s *state) read(out, message []byte) (payload []byte, first, second *noise.CipherState, err error) {
	payload, first, second, err = s.noise.ReadMessage(out, message)
	weak := s.keys.endMessage()
	switch {
	case err != nil:
		return nil, nil, nil, ErrAuth
	case weak: // an end that knows the keys has sent a point of low order
		s.end()
		return nil, nil, nil, ErrAuth
	}
	return payload, first, second, nil
}

func (s *state) end() {
	s.noise = nil
	s.keys.end()
}

// take returns the key of a cipher of flynn/noise, and makes the cipher overwrite its copy.
func take(c *noise.CipherState) [SecretSize]byte {
	key := c.UnsafeKey()
	c.Rekey()
	return key
}
