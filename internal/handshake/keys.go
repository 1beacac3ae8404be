package handshake

import (
	"crypto/ecdh"
	"crypto/sha256"
	"io"
)

// PublicKey is an X25519 public key. It is the identity of a host.
type PublicKey [KeySize]byte

// KeyID is the short name of a key in Hello. The server finds its key by it. It is no secret and not unique.
type KeyID [4]byte

// keyIDLabel makes the names of keys different from other hashes of them.
const keyIDLabel = "datxdp key ID"

// ID returns the name of the key.
func (k PublicKey) ID() KeyID { return keyID(k[:]) }

func keyID(b []byte) (id KeyID) {
	sum := sha256.Sum256(append([]byte(keyIDLabel), b...))
	copy(id[:], sum[:])
	return id
}

// PrivateKey is an X25519 private key. It does not change, and any goroutine may use it.
type PrivateKey struct {
	key    *ecdh.PrivateKey
	public PublicKey
}

// NewPrivateKey makes a private key of KeySize random bytes. It copies them, and the caller overwrites its own copy.
func NewPrivateKey(b []byte) (*PrivateKey, error) {
	key, err := ecdh.X25519().NewPrivateKey(b)
	if err != nil {
		return nil, ErrLength
	}
	return &PrivateKey{key, PublicKey(key.PublicKey().Bytes())}, nil
}

// GenerateKey makes a new private key.
func GenerateKey(random io.Reader) (*PrivateKey, error) {
	var b [KeySize]byte
	defer clear(b[:])
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, ErrRandom
	}
	return NewPrivateKey(b[:])
}

// Bytes returns a copy of the key, which the caller overwrites.
func (k *PrivateKey) Bytes() []byte { return k.key.Bytes() }

// PublicKey returns the public key in memory that does not change.
func (k *PrivateKey) PublicKey() *PublicKey { return &k.public }

// Public returns the public key.
func (k *PrivateKey) Public() PublicKey { return k.public }

// SharedKey is a secret of 32 random bytes that both ends know. It does not change until Wipe.
type SharedKey [KeySize]byte

// ID returns the name of the key. Nobody can find the key by it, because the key is random.
func (k *SharedKey) ID() KeyID {
	sum := sha256.Sum256(k[:])
	return keyID(sum[:])
}

// Wipe overwrites the key.
func (k *SharedKey) Wipe() { clear(k[:]) }

// Secrets are the result of a handshake: one secret for each direction, as this end sees it.
type Secrets struct {
	Send, Receive [SecretSize]byte
}

// Wipe overwrites the secrets.
func (s *Secrets) Wipe() { *s = Secrets{} }
