package identity

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"

	"github.com/datxdp/datxdp/internal/handshake"
)

// maxKeys bounds the keys of a host. A rotation needs two.
const maxKeys = 16

// keyText is the length of a key in base64.
const keyText = 44

// Keys are the private keys of this host, at least one.
type Keys struct{ keys []*handshake.PrivateKey }

// Connect returns the key that this host connects with: the first of the file.
func (k *Keys) Connect() *handshake.PrivateKey { return k.keys[0] }

// Find returns the key with a key ID, or nil. A requester names the server's key by it.
func (k *Keys) Find(id handshake.KeyID) *handshake.PrivateKey {
	for _, key := range k.keys {
		if key.Public().ID() == id {
			return key
		}
	}
	return nil
}

// Public returns the public keys in the order of the file.
func (k *Keys) Public() (keys []handshake.PublicKey) {
	for _, key := range k.keys {
		keys = append(keys, key.Public())
	}
	return keys
}

// Text returns a public key as it is written in a file of peers.
func Text(k handshake.PublicKey) string { return base64.StdEncoding.EncodeToString(k[:]) }

// ParsePublic parses the text of a public key.
func ParsePublic(text string) (k handshake.PublicKey, err error) {
	err = decodePublic((*[handshake.KeySize]byte)(&k), []byte(text))
	return k, err
}

// The highest bit of an X25519 key means nothing (RFC 7748 §5): a private key may have it, and a public key does not.
// CreateKey sets it, so that a private key in the place of a public key is noticed.
const (
	markedByte = handshake.KeySize - 1
	privateBit = 0x80
)

var errPrivate = errors.New("this is not a public key, but perhaps a private one, which nobody else may have: datbench keygen --public prints the public key")

// decodePublic reads a public key in base64.
func decodePublic(key *[handshake.KeySize]byte, text []byte) error {
	if err := decode(key, text); err != nil {
		return err
	}
	if key[markedByte]&privateBit != 0 {
		clear(key[:])
		return errPrivate
	}
	return nil
}

// misplaced returns the peer that has a private key of k in the place of its public key, or nil.
func (k *Keys) misplaced(p *Policy) *Peer {
	for _, key := range k.keys {
		b := key.Bytes()
		peer := p.Find(PublicID(handshake.PublicKey(b)))
		if clear(b); peer != nil {
			return peer
		}
	}
	return nil
}

// parseKeys reads the text of a key file.
func parseKeys(file string, text []byte) (*Keys, error) {
	if err := checkEncoding(text); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	k := &Keys{}
	for n, fields := range lines(text) {
		if err := k.add(fields); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	if len(k.keys) == 0 {
		return nil, fmt.Errorf("%s has no key: make a key file with datbench keygen", file)
	}
	return k, nil
}

func (k *Keys) add(fields [][]byte) error {
	if len(fields) > 1 {
		return errors.New("more than a private key: write one key a line, and # before a comment")
	}
	if len(k.keys) == maxKeys {
		return fmt.Errorf("more than %d keys: remove old ones", maxKeys)
	}
	var b [handshake.KeySize]byte
	defer clear(b[:])
	if err := decode(&b, fields[0]); err != nil {
		return fmt.Errorf("not a private key: %w", err)
	}
	key, err := handshake.NewPrivateKey(b[:])
	if err != nil {
		return err
	}
	if k.Find(key.Public().ID()) != nil {
		return errors.New("the key, or another with the same key ID, is in the file already: remove this line")
	}
	k.keys = append(k.keys, key)
	return nil
}

// decode reads a key in base64. Its errors do not quote the text, which may be a secret.
func decode(key *[handshake.KeySize]byte, text []byte) error {
	var b [keyText]byte // Decode needs room for more than a key
	defer clear(b[:])
	if len(text) != keyText {
		return fmt.Errorf("write 32 bytes in base64, which are %d characters, not %d", keyText, len(text))
	}
	if n, err := base64.StdEncoding.Strict().Decode(b[:], text); err != nil || n != len(key) {
		return errors.New("write 32 bytes in base64; this text is damaged")
	}
	copy(key[:], b[:])
	if *key == ([handshake.KeySize]byte{}) {
		return errors.New("all bytes are 0: make one with datbench keygen")
	}
	return nil
}

// checkEncoding returns an error for a text with a byte order mark. An editor does not show it.
func checkEncoding(text []byte) error {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(text, []byte(mark)) {
			return errors.New("it begins with a byte order mark: save it as ASCII, or as UTF-8 without the mark")
		}
	}
	return nil
}

// lines returns the number and the words of each line that has words. Words after # do not count.
func lines(text []byte) iter.Seq2[int, [][]byte] {
	return func(yield func(int, [][]byte) bool) {
		n := 0
		for line := range bytes.Lines(text) {
			n++
			line, _, _ = bytes.Cut(line, []byte("#"))
			if fields := bytes.Fields(line); len(fields) > 0 && !yield(n, fields) {
				return
			}
		}
	}
}
