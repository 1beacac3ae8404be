package handshake

import (
	"crypto/ecdh"
	"io"

	"github.com/flynn/noise"
)

// exchange has the private keys of one handshake, and implements noise.DHFunc with crypto/ecdh. flynn/noise gets markers
// in place of private keys. It passes private keys as bytes to golang.org/x/crypto, which expands them again for each
// operation; that takes as long as the operation.
type exchange struct {
	static    *ecdh.PrivateKey // nil in NNpsk0
	ephemeral *ecdh.PrivateKey // nil until the own message is written
	random    io.Reader        // source of the ephemeral key
	shared    [][]byte         // results of the operations of one message
	// weak is set if the peer's key is a point of low order, so that the result is 0 for every private key.
	weak bool
}

var _ noise.DHFunc = (*exchange)(nil)

// Markers of the own keys.
var (
	staticKey    = []byte{0}
	ephemeralKey = []byte{1}
)

// GenerateKeypair makes the ephemeral key. It reads the bytes itself, because crypto/ecdh ignores the reader.
func (x *exchange) GenerateKeypair(io.Reader) (noise.DHKey, error) {
	b := make([]byte, KeySize)
	defer clear(b)
	if _, err := io.ReadFull(x.random, b); err != nil {
		return noise.DHKey{}, ErrRandom
	}
	key, err := ecdh.X25519().NewPrivateKey(b)
	if err != nil {
		return noise.DHKey{}, err
	}
	x.ephemeral = key
	return noise.DHKey{Private: ephemeralKey, Public: key.PublicKey().Bytes()}, nil
}

// DH computes the secret that an own key shares with a public key of the peer. A point of low order gives 0 and no
// error, because after an error flynn/noise does not restore its state, and cannot read the right message later.
func (x *exchange) DH(own, public []byte) ([]byte, error) {
	key := x.static
	if own[0] == ephemeralKey[0] {
		key = x.ephemeral
	}
	peer, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	out, err := key.ECDH(peer)
	if err != nil {
		x.weak = true
		return make([]byte, KeySize), nil
	}
	x.shared = append(x.shared, out)
	return out, nil
}

// DHLen returns the size of a key in bytes.
func (*exchange) DHLen() int { return KeySize }

// DHName returns the name in the Noise protocol's name.
func (*exchange) DHName() string { return "25519" }

// endMessage overwrites the shared secrets of a message. It reports whether a key of the peer was weak.
func (x *exchange) endMessage() (weak bool) {
	for _, s := range x.shared {
		clear(s)
	}
	weak = x.weak
	x.shared, x.weak = x.shared[:0], false
	return weak
}

// end drops the ephemeral key.
func (x *exchange) end() { *x = exchange{} }
