package identity

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// keyLogVar names the file that gets the secrets of connections.
const keyLogVar = "DATXDP_KEYLOG"

// KeyLog is a file that gets the secrets of connections, for programs that decrypt captures. Any goroutine may call its
// methods. Programs and adapters may share the file, because each Write appends.
type KeyLog struct {
	file *os.File
	lost atomic.Uint64
	warn func(error)
}

// KeyLogFile returns the file that DATXDP_KEYLOG names, or "".
func KeyLogFile() string { return os.Getenv(keyLogVar) }

// OpenKeyLog opens the file that DATXDP_KEYLOG names. It returns nil if there is none. It makes a missing file, which only
// the user of this process may access. It refuses a file that its group or others may access, or that belongs to another
// user than this one and root, and the files that the adapter reads: used is where its keys and peers are. It does not obey
// the variable in a program that runs with more rights than its user has: the user would choose which file the program
// changes, and read what the program protects. It follows no symbolic link, which another user may have made. warn gets the
// first error of Write.
//
// System calls: openat, fstat, fgetxattr, newfstatat.
func OpenKeyLog(used Files, warn func(error)) (*KeyLog, error) {
	name := KeyLogFile()
	if name == "" {
		return nil, nil
	}
	if err := CheckKeyLog(used); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|nonblock|nofollow, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyLogVar, err)
	}
	if err = used.checkLog(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %s: %w", keyLogVar, name, err), f.Close())
	}
	return &KeyLog{file: f, warn: warn}, nil
}

// checkLog returns an error if an open file may not be the key log of an adapter.
func (f *Files) checkLog(open *os.File) error {
	if err := checkSecret(open); err != nil {
		return err
	}
	return f.checkOther(open)
}

// checkOther returns an error if an open file is one of the files of an adapter, also by another name.
func (f *Files) checkOther(open *os.File) error {
	info, err := open.Stat()
	if err != nil {
		return err
	}
	for _, used := range [...]struct{ name, what string }{{f.Source(), "key file"}, {f.Peers, "file of peers"}, {f.Known, "file of known servers"}} {
		if other, err := os.Stat(used.name); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("this is the %s of the adapter: name another file", used.what)
		}
	}
	return nil
}

// CheckKeyLog returns an error if DATXDP_KEYLOG names a file that OpenKeyLog refuses. A missing file is none.
func CheckKeyLog(used Files) error {
	name := KeyLogFile()
	if name == "" {
		return nil
	}
	if raised() {
		return fmt.Errorf("%s is refused in a program with more rights than its user (setuid, file capabilities): "+
			"unset it, or give the rights as ambient capabilities", keyLogVar)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|nonblock|nofollow, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", keyLogVar, err)
	}
	defer f.Close()
	if err := used.checkLog(f); err != nil {
		return fmt.Errorf("%s: %s: %w", keyLogVar, name, err)
	}
	return nil
}

// checkSecret returns an error if a file is not regular, if it belongs to a stranger, or if others may access it.
func checkSecret(f *os.File) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("not a regular file")
	}
	if err := checkOwner(f.Name(), info); err != nil {
		return err
	}
	p := private{f, info}
	return p.deny(access)
}

// Name returns the name of the file.
func (k *KeyLog) Name() string { return k.file.Name() }

// Write appends lines.
func (k *KeyLog) Write(lines []byte) (int, error) {
	n, err := k.file.Write(lines)
	if err != nil && k.lost.Add(1) == 1 {
		k.warn(fmt.Errorf("%s: %w", keyLogVar, err))
	}
	return n, err
}

// Close closes the file. k may be nil.
func (k *KeyLog) Close() error {
	if k == nil {
		return nil
	}
	return k.file.Close()
}
