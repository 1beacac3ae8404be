package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"sync"

	"github.com/datxdp/datxdp/internal/handshake"
)

// Known is the file of the servers that this host has met: trust on first use, as in known_hosts of SSH. A line has an
// address and a public key. Of several lines with one address, the first counts. The file is read for each call, so it
// may be edited at any time. Any goroutine may call the methods.
type Known struct {
	name string
	mu   sync.Mutex // held while a line is added
}

// ErrOtherKey: the file of known servers has another key for the address.
var ErrOtherKey = errors.New("another key is known for this address: if the server has a new key, remove its line")

// OpenKnown returns the file of known servers with a name. It makes a missing file. It refuses a file that its group or
// others may change, or that belongs to another user than this one and root.
func OpenKnown(name string) (*Known, error) {
	k := &Known{name: name}
	if err := k.append(nil); err != nil {
		return nil, err
	}
	_, _, err := k.Find(netip.Addr{})
	return k, err
}

// CountKnown returns the number of servers in a file. It makes no file.
func CountKnown(name string) (n int, err error) {
	err = (&Known{name: name}).each(func(netip.Addr, handshake.PublicKey) { n++ })
	return n, err
}

// Name returns the name of the file.
func (k *Known) Name() string { return k.name }

// Find returns the key of the server at an address, if the file has one.
func (k *Known) Find(a netip.Addr) (key handshake.PublicKey, found bool, err error) {
	err = k.each(func(at netip.Addr, of handshake.PublicKey) {
		if at == a && !found {
			key, found = of, true
		}
	})
	return key, found, err
}

// Add adds the key of the server at an address. It returns ErrOtherKey if the file has another one.
//
// System calls: those of each; openat, write, close.
func (k *Known) Add(a netip.Addr, key handshake.PublicKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch known, found, err := k.Find(a); {
	case err != nil:
		return err
	case found && known != key:
		return fmt.Errorf("%s: %w", k.name, ErrOtherKey)
	case found:
		return nil
	}
	return k.append([]byte(fmt.Sprintf("\n%v %s\n", a, Text(key)))) // a user may have left the last line without its end
}

func (k *Known) append(line []byte) error {
	f, err := os.OpenFile(k.name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|nonblock, 0o600)
	if err == nil {
		_, err = f.Write(line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("file of known servers: %w", err)
	}
	return nil
}

// each calls f for each line. No file is an empty one.
func (k *Known) each(f func(netip.Addr, handshake.PublicKey)) (err error) {
	file, err := openPrivate(k.name, maxPeers, change)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("file of known servers: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	text, err := file.read()
	if err != nil {
		return fmt.Errorf("file of known servers: %w", err)
	}
	for n, fields := range lines(text) {
		a, key, err := parseKnown(fields)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", k.name, n, err)
		}
		f(a, key)
	}
	return nil
}

// parseKnown reads a line. Its errors do not quote the text, which may be a secret of another file.
func parseKnown(fields [][]byte) (a netip.Addr, key handshake.PublicKey, err error) {
	if len(fields) != 2 {
		return a, key, errors.New("not a known server: write an address and a public key")
	}
	if a, err = netip.ParseAddr(string(fields[0])); err != nil {
		return a, key, errors.New("not a known server: the first word is not an address")
	}
	if key, err = ParsePublic(string(fields[1])); err != nil {
		return a, key, fmt.Errorf("not a known server: the second word is not a public key: %w", err)
	}
	return a.Unmap(), key, nil
}
