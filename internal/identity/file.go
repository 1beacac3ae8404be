package identity

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Sizes of files in bytes. They bound the memory that a wrong path can take.
const (
	maxKeyFile = 64 << 10
	maxPeers   = 8 << 20 // some 60000 peers
)

// Permissions that a file may not give to its group and to others.
const (
	access fs.FileMode = 0o077 // of a file with a secret
	// byGroup is what the group of such a file may do if the file belongs to root: only root makes a file so, and thereby
	// says who has the secret. Kubernetes gives a secret to the user of a pod in this way (fsGroup).
	byGroup fs.FileMode = 0o040
	change  fs.FileMode = 0o022 // of every file, because what it says is obeyed
)

// private is an open file that belongs to this program's user or to root.
type private struct {
	*os.File
	info fs.FileInfo
}

// openPrivate opens a regular file of at most a given size. It refuses the file if its group or others have one of the
// permissions in forbidden.
//
// System calls: openat, fstat, fgetxattr.
func openPrivate(name string, most int64, forbidden fs.FileMode) (_ *private, err error) {
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0) // without nonblock, a pipe without a writer blocks the call
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
		}
	}()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > most:
		return nil, fmt.Errorf("%d bytes, and the most are %d: this is another file", info.Size(), most)
	}
	p := &private{f, info}
	if err := checkOwner(name, info); err != nil {
		return nil, err
	}
	return p, p.deny(forbidden)
}

// deny returns an error if the group of the file, or others, have one of the forbidden permissions.
func (p *private) deny(forbidden fs.FileMode) error {
	mode, allowed := p.info.Mode().Perm(), fs.FileMode(0)
	if ofRoot(p.info) {
		allowed = byGroup
	}
	switch {
	case mode&forbidden == 0 || granted(p.File, mode)&(forbidden&^allowed) == 0:
		return nil
	case forbidden == change:
		return fmt.Errorf("its group or others may change it (mode %04o): chmod go-w %s", mode, p.Name())
	}
	return fmt.Errorf("its group or others may access the secrets in it (mode %04o): chmod 600 %s", mode, p.Name())
}

// read returns the content of the file. The caller overwrites it.
func (p *private) read() ([]byte, error) {
	b := make([]byte, p.info.Size()+1)
	n, err := io.ReadFull(p, b)
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if ended && int64(n) == p.info.Size() {
		return b[:n], nil
	}
	clear(b)
	if err == nil || ended {
		err = errors.New("changed while it was read: try again")
	}
	return nil, fmt.Errorf("%s: %w", p.Name(), err)
}

// ReadKeys reads a key file. It refuses a file that its group or others may access, or that belongs to neither the user
// of this process nor root. The group may read a file of root. On Linux, an access list may name the user of this process: systemd passes credentials so.
func ReadKeys(name string) (_ *Keys, err error) {
	f, err := openPrivate(name, maxKeyFile, access)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("key file: %w: correct the name, or make the file with datbench keygen", err)
	}
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := f.read()
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	defer clear(text)
	return parseKeys(name, text)
}

// readPeers reads a file of peers. Everybody may read it if it has no shared secrets.
func readPeers(name string) (_ *Policy, err error) {
	f, err := openPrivate(name, maxPeers, change)
	if err != nil {
		return nil, fmt.Errorf("file of peers: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := f.read()
	if err != nil {
		return nil, fmt.Errorf("file of peers: %w", err)
	}
	defer clear(text)
	p, err := parsePeers(name, text)
	if err != nil {
		return nil, err
	}
	if len(p.shared) > 0 {
		if err := f.deny(access); err != nil {
			p.drop()
			return nil, fmt.Errorf("file of peers: %s: %w", name, err)
		}
	}
	return p, nil
}
