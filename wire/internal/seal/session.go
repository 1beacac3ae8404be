package seal

import (
	"crypto/cipher"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// Config holds the arguments of New.
type Config struct {
	// Send and Receive are the secrets of the two directions. New overwrites them.
	Send, Receive *[SecretSize]byte
	// Leads is set at the end that starts key updates: the requester.
	Leads  bool
	Limits Limits
	// First is the counter of the first packets of both directions. It is 0 except in tests.
	First uint64
	// Cipher makes a cipher of a key of 16 bytes. nil means AES-128-GCM.
	Cipher func(key []byte) (cipher.AEAD, error)
}

// Session holds the keys of one connection.
type Session struct {
	leads  bool
	limits Limits
	since  clock.Time // when the sending key was made
	send   sender
	recv   receiver
}

// sender is the state of the direction to the peer.
type sender struct {
	chain
	key
	phase   uint32
	counter uint64 // counter of the next packet
	first   uint64 // counter of the first packet of the phase
}

// receiver is the state of the direction from the peer.
type receiver struct {
	chain
	key      key
	before   key // key of the phase before, until Expire
	after    key // key of the next phase, from the first packet on that seems to belong to it
	phase    uint32
	first    uint64 // counter of the packet that began the phase
	movedAt  clock.Time
	failures uint64 // packets that did not authenticate
	window
}

// New makes the session of a connection.
func New(c *Config, now clock.Time) (*Session, error) {
	s := &Session{leads: c.Leads, limits: c.Limits, since: now}
	newCipher := c.Cipher
	if newCipher == nil {
		newCipher = newGCM
	}
	s.send.chain, s.recv.chain = chain{*c.Send, newCipher}, chain{*c.Receive, newCipher}
	clear(c.Send[:])
	clear(c.Receive[:])
	s.send.counter, s.send.first = c.First, c.First
	s.recv.next, s.recv.first = c.First, c.First
	var err error
	if s.send.key, err = s.send.derive(); err != nil {
		return nil, err
	}
	if s.recv.key, err = s.recv.derive(); err != nil {
		return nil, err
	}
	return s, nil
}

// Expire drops the receiving key of the phase before, if the phase began grace ago or earlier. It reports whether such a
// key remains. The caller calls it again when grace has passed.
func (s *Session) Expire(now clock.Time, grace time.Duration) (remains bool) {
	r := &s.recv
	if r.before.exists() && now.Sub(r.movedAt) >= grace {
		r.before = key{}
	}
	return r.before.exists()
}

// Sealed returns the number of packets that Seal has sealed. It is the counter of the next one.
func (s *Session) Sealed() uint64 { return s.send.counter }

// Phases returns the numbers of key updates of the two directions.
func (s *Session) Phases() (send, receive uint32) { return s.send.phase, s.recv.phase }

// Failures returns the number of packets that did not authenticate.
func (s *Session) Failures() uint64 { return s.recv.failures }

// Wipe overwrites the secrets and drops the keys. Afterwards Seal and Open refuse every packet.
func (s *Session) Wipe() { *s = Session{} }
