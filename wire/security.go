package wire

import (
	"io"
	"net/netip"
)

// Security is what a host needs for secure mode: the handshakes, which another package makes, and a runner for them.
//
// A handshake is one of package wire's two patterns of the Noise Protocol Framework, with two messages (docs/WIRE.md).
// Its computations take long, so they are jobs. A job may run on any goroutine, and several may run at a time.
type Security struct {
	Responder Responder
	// Runner runs the jobs of the handshakes. nil means that each job runs at once, on the goroutine that owns the engine.
	Runner Runner
	// ServerKey returns the public key that this host sends to a requester that asks for it. nil means none. The owner of an
	// engine calls it.
	ServerKey func() *[32]byte
	// KeyLog gets the secrets of all connections, in one Write for each. nil means that nobody gets them. Jobs call Write, so
	// it may block, and may be called by several goroutines at a time. It must not keep the slice.
	KeyLog io.Writer
}

// Requester begins the handshakes with one server. Any goroutine may call its methods.
type Requester interface {
	// Form returns the first byte of the Noise option, which names the pattern and the cipher, and the ID of the
	// server's key.
	Form() (form byte, keyID [4]byte)
	// Keys returns the public keys of this host and of the server, or 0 if the pattern has none.
	Keys() (own, server [32]byte)
	// Grant returns a grant for a connection to the server. nil means that the server may have and hold everything.
	Grant() Grant
	// Request makes message 1. It does not keep the slices.
	Request(prologue, payload []byte) (message []byte, f Finisher, err error)
}

// KeyLearner is a Requester that does not know the server's key: it asks the server, and trusts the key that the handshake
// proves. Only its methods Grant and Learn are called.
type KeyLearner interface {
	Requester
	// Learn returns a Requester for a key from a Challenge. Nobody has authenticated the key, so one connection attempt may
	// learn several.
	Learn(key [32]byte) Requester
}

// Finisher is a handshake whose message 1 was sent. It has one caller at a time.
type Finisher interface {
	// Finish reads message 2. It returns the payload, and writes the secrets of the two directions. After an error, the
	// right message may still come.
	Finish(message []byte, send, receive *[32]byte) (payload []byte, err error)
	// Forget ends a handshake that is not needed any more. Finish is not called afterwards.
	Forget()
}

// Responder answers handshakes, and decides who may connect. Any goroutine may call its method.
type Responder interface {
	// Respond reads message 1 of a requester at an address, for the service of a qualifier. It returns the payload, and an
	// Answerer for message 2. The error is or wraps a Denial; any other error counts as DeniedKey. After an error the
	// requester gets a Reject if there is an Answerer, and otherwise no answer.
	Respond(from netip.Addr, qual uint64, form byte, keyID [4]byte, prologue, message []byte) (payload []byte, a Answerer, err error)
}

// Answerer is a handshake whose message 1 was read. It has one caller at a time.
type Answerer interface {
	// Peer returns the public key of the requester, or 0 if the pattern has none, and the name of the requester.
	Peer() (key [32]byte, name string)
	// Own returns the public key of this host that the requester expects, or 0 if the pattern has none.
	Own() [32]byte
	// Allows reports whether the requester may connect to the service of another qualifier.
	Allows(qual uint64) bool
	// Grant returns the grant for the connection. nil means that the requester may have and hold everything. It is called
	// once, also if the request is not delivered, unless Respond has returned an error.
	Grant() Grant
	// Reply makes message 2, and writes the secrets of the two directions. It ends the handshake.
	Reply(payload []byte, send, receive *[32]byte) (message []byte, err error)
	// Forget ends a handshake that is not answered.
	Forget()
}

// Runner runs jobs.
type Runner interface {
	// Submit makes Do of the job run once, now or later, on any goroutine. It returns false if it has no room for the
	// job. The owner of the job's engine calls Submit, so Submit must not block. A Runner that ends, because the engine
	// will be closed, may drop jobs that have a From.
	Submit(*Job) bool
}

// Secure puts a host into secure mode. It must be called before NewEngine.
func (h *Host) Secure(s Security) { h.security = &s }
