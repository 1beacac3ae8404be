package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
)

// Sizes in bytes.
const (
	SecretSize  = 32
	keySize     = 16
	saltSize    = 4
	counterSize = 8
	nonceSize   = saltSize + counterSize
)

// Labels of HKDF-Expand. Secret n gives the key and the salt of phase n, and secret n+1.
const (
	labelKey  = "datxdp key"
	labelSalt = "datxdp salt"
	labelNext = "datxdp next"
)

// key is the cipher of one direction in one phase. The zero value is no key.
type key struct {
	aead  cipher.AEAD
	nonce [nonceSize]byte // salt, then the counter of the packet
}

func (k *key) exists() bool { return k.aead != nil }

// number writes a counter into the nonce.
func (k *key) number(counter uint64) { binary.BigEndian.PutUint64(k.nonce[saltSize:], counter) }

// chain makes the keys of one direction, one for each phase.
type chain struct {
	secret    [SecretSize]byte
	newCipher func(key []byte) (cipher.AEAD, error)
}

// derive makes the key of the next phase, and replaces the secret.
func (c *chain) derive() (key, error) {
	var k key
	b, err := c.expand(labelKey, keySize)
	if err != nil {
		return key{}, err
	}
	defer clear(b)
	if k.aead, err = c.newCipher(b); err != nil {
		return key{}, err
	}
	salt, err := c.expand(labelSalt, saltSize)
	if err != nil {
		return key{}, err
	}
	copy(k.nonce[:], salt)
	next, err := c.expand(labelNext, SecretSize)
	if err != nil {
		return key{}, err
	}
	copy(c.secret[:], next)
	clear(next)
	return k, nil
}

func (c *chain) expand(label string, n int) ([]byte, error) {
	return hkdf.Expand(sha256.New, c.secret[:], label, n)
}

// newGCM is the cipher of version 2.
func newGCM(b []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(b)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
