package identity

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/datxdp/datxdp/internal/handshake"
)

// CreateKey makes a key file with a new private key, which only the user of this process may access, and returns the
// public key. It replaces no file.
func CreateKey(name string) (handshake.PublicKey, error) {
	var b [handshake.KeySize]byte
	defer clear(b[:])
	rand.Read(b[:])
	b[markedByte] |= privateBit
	key, err := handshake.NewPrivateKey(b[:])
	if err != nil {
		return handshake.PublicKey{}, err
	}
	return key.Public(), create(name, "", b[:])
}

// CreateSecret makes a file of peers with a new shared secret, which only the user of this process may access. It
// replaces no file.
func CreateSecret(name string) error {
	var b [handshake.KeySize]byte
	defer clear(b[:])
	rand.Read(b[:])
	return create(name, secretPrefix, b[:])
}

// create writes a file with one line. If that fails, there is no file.
//
// System calls: openat, write, fsync, close; unlinkat after an error.
func create(name, prefix string, key []byte) error {
	line := append([]byte(prefix), make([]byte, keyText+1)...)
	defer clear(line)
	base64.StdEncoding.Encode(line[len(prefix):], key)
	line[len(line)-1] = '\n'
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already, and a lost key cannot be made again: choose another name", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
