package handshake

import "errors"

// Form names a pattern. It is the lower half of the first byte in the option of Hello.
type Form uint8

const (
	// IK is for a requester that knows the public key of the server. It authenticates both ends by their keys.
	IK Form = 1
	// NNpsk0 is for ends that share a secret.
	NNpsk0 Form = 2
)

// Sizes in bytes.
const (
	KeySize    = 32 // a public key, a private key, or a shared key
	SecretSize = 32
	tagSize    = 16

	// Overhead is the number of bytes by which the encrypted payload of a message is longer than the payload.
	Overhead = tagSize
	// MaxPayload bounds the payload of a message: an Accept with all options and private data is shorter.
	MaxPayload = 640 - Overhead
)

// A message begins with its head: the sender's ephemeral key, and in message 1 of IK its encrypted static key. The
// encrypted payload follows.
const (
	headIK    = KeySize + KeySize + tagSize
	headOther = KeySize
)

// RequestHead returns the size in bytes of the head of message 1, or 0 if the form is unknown.
func (f Form) RequestHead() int {
	switch f {
	case IK:
		return headIK
	case NNpsk0:
		return headOther
	default:
		return 0
	}
}

// ReplyHead returns the size in bytes of the head of message 2, or 0 if the form is unknown.
func (f Form) ReplyHead() int {
	if f.RequestHead() == 0 {
		return 0
	}
	return headOther
}

// Errors of all functions, for errors.Is.
var (
	// ErrLength: a message, payload or key has an impossible length.
	ErrLength = errors.New("handshake: wrong length")
	// ErrAuth: a message does not authenticate. The keys or the prologues of the ends differ, or somebody has changed
	// the message.
	ErrAuth = errors.New("handshake: message does not authenticate")
	// ErrState: the handshake is over.
	ErrState = errors.New("handshake: already finished")
	// ErrRandom: the source of randomness failed.
	ErrRandom = errors.New("handshake: no randomness")
)

// checkLength reports whether a message with a head of the given size may have n bytes.
func checkLength(n, head int) error {
	if n < head+Overhead || n > head+Overhead+MaxPayload {
		return ErrLength
	}
	return nil
}
