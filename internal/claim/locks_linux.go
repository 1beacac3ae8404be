package claim

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/exclusive"
)

// namespaceFile has the same inode in all processes of a network namespace, whatever files and containers they see.
const namespaceFile = "/proc/thread-self/ns/net"

// fileLocks are open file description locks. They are read locks, because the file can only be read. Read locks do not
// exclude each other, but the kernel tells whether another process has one.
type fileLocks struct{ file *os.File }

// openLocks opens the file of the calling thread's network namespace.
func openLocks() (_ locks, inode uint64, err error) {
	f, err := os.Open(namespaceFile)
	if err != nil {
		return nil, 0, err
	}
	l := fileLocks{f}
	exclusive.Add(int(f.Fd()))
	var st unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &st); err == nil {
		err = l.free(0, nil) // fails if the system or its security policy has no such locks
	}
	if err != nil {
		return nil, 0, errors.Join(err, l.close())
	}
	return l, st.Ino, nil
}

// lock looks before it locks. So it fails only because of a process that has the record, or may still get it: of several
// processes that claim a record at the same time, the last that goes on finds nobody.
func (l fileLocks) lock(record int64) error {
	if err := l.free(record, ErrInUse); err != nil {
		return err
	}
	if _, err := l.call(unix.F_OFD_SETLK, unix.F_RDLCK, record); err != nil {
		return err
	}
	if err := l.free(record, errRace); err != nil {
		l.unlock(record)
		return err
	}
	return nil
}

// free returns the error taken if another process has locked a record.
func (l fileLocks) free(record int64, taken error) error {
	found, err := l.call(unix.F_OFD_GETLK, unix.F_WRLCK, record)
	if err == nil && found.Type != unix.F_UNLCK {
		return taken
	}
	return err
}

func (l fileLocks) unlock(record int64) {
	_, _ = l.call(unix.F_OFD_SETLK, unix.F_UNLCK, record) // cannot fail: it gives up a record of one byte
}

// call makes the system call fcntl for a record.
func (l fileLocks) call(command int, kind int16, record int64) (unix.Flock_t, error) {
	r := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: record, Len: 1}
	if err := unix.FcntlFlock(l.file.Fd(), command, &r); err != nil {
		return r, fmt.Errorf("fcntl %s: %w", namespaceFile, err)
	}
	return r, nil
}

func (l fileLocks) close() error {
	exclusive.Remove(int(l.file.Fd()))
	return l.file.Close()
}
