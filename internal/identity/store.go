package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/datxdp/datxdp/internal/handshake"
)

// Variables of the environment with the key of this host.
const (
	credentialsVar  = "CREDENTIALS_DIRECTORY" // set by systemd
	credentialsFile = "datxdp.key"

	// KeyVariable is the variable with the text of a key.
	KeyVariable = "DATXDP_KEY"
)

// ErrNoKey: this host has no key.
var ErrNoKey = errors.New("no private key: make a key file with datbench keygen, and name it in an option")

// Files names the files of a host.
type Files struct {
	// Key is the key file. If it is empty, the file datxdp.key in $CREDENTIALS_DIRECTORY is used, or if there is none,
	// the text in DATXDP_KEY. The variable is for tests: every process that this one starts gets it.
	Key string
	// Peers is the file of peers. If it is empty, nobody may connect.
	Peers string
	// Known is the file of known servers. A Store does not read it.
	Known string
}

// Set is what the files say. It does not change.
type Set struct {
	Keys    *Keys
	Policy  *Policy
	version version // of the files
}

// Announced returns the public key that the host tells others: that with which it connects. It does not change.
func (s *Set) Announced() *[handshake.KeySize]byte {
	return (*[handshake.KeySize]byte)(s.Keys.keys[0].PublicKey())
}

// Store has the Set of the newest Reload, and the accounts of the peers.
type Store struct {
	files    Files
	current  atomic.Pointer[Set]
	accounts accounts
}

// Open reads the files. The error is ErrNoKey if no source has a key.
func Open(f Files) (*Store, error) {
	set, err := f.read()
	if err != nil {
		return nil, err
	}
	s := &Store{files: f}
	s.current.Store(set)
	return s, nil
}

// Current returns the keys and peers that count now. Any goroutine may call it.
func (s *Store) Current() *Set { return s.current.Load() }

// Account returns the account of a peer of the current Set.
func (s *Store) Account(p *Peer) *Account { return s.accounts.of(p) }

// Reload reads the files again, and drops the shared secrets of the Set before. It returns the peers that are gone, with
// their old properties; a peer with another key is another peer. After an error everything is as before. Reload has one
// caller at a time.
func (s *Store) Reload() (removed []*Peer, err error) {
	next, err := s.files.read()
	if err != nil {
		return nil, err
	}
	last := s.current.Swap(next).Policy
	last.drop()
	s.accounts.renew(next.Policy)
	return last.removed(next.Policy), nil
}

// Close drops all secrets. Nobody is known after it.
func (s *Store) Close() {
	s.current.Swap(&Set{Keys: s.Current().Keys, Policy: &Policy{}}).Policy.drop()
}

func (f *Files) read() (*Set, error) {
	version := f.version() // first: what changes meanwhile is read again
	if version[0].isFile(version[1]) {
		return nil, fmt.Errorf("%s: this is the key file, and the file of peers too: the file of peers has the public keys of other hosts", f.Peers)
	}
	keys, err := f.readKeys()
	if err != nil {
		return nil, err
	}
	policy := &Policy{}
	if f.Peers != "" {
		if policy, err = readPeers(f.Peers); err != nil {
			return nil, err
		}
	}
	if p := keys.misplaced(policy); p != nil {
		policy.drop()
		return nil, fmt.Errorf("%s:%d: a private key of this host is in the place of a public key: write the public key of the peer, "+
			"and make a new private key if others could read this file", f.Peers, p.line)
	}
	return &Set{keys, policy, version}, nil
}

// Source returns the name of the file that has the keys, KeyVariable if a variable has them, or "" if there is no key.
//
// System calls: newfstatat.
func (f *Files) Source() string {
	if f.Key != "" {
		return f.Key
	}
	if dir := os.Getenv(credentialsVar); dir != "" {
		name := filepath.Join(dir, credentialsFile)
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) { // a link without a file is an error, not plaintext mode
			return name
		}
	}
	if os.Getenv(KeyVariable) != "" {
		return KeyVariable
	}
	return ""
}

// readKeys reads the keys from the first source that has some.
func (f *Files) readKeys() (*Keys, error) {
	switch name := f.Source(); name {
	case "":
		return nil, ErrNoKey
	case f.Key: // a file may have any name
		return ReadKeys(name)
	case KeyVariable:
		b := []byte(os.Getenv(KeyVariable))
		defer clear(b)
		return parseKeys(KeyVariable, b)
	default:
		return ReadKeys(name)
	}
}
