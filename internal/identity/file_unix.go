//go:build unix

package identity

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	nonblock = syscall.O_NONBLOCK
	nofollow = syscall.O_NOFOLLOW
)

// ofRoot reports whether a file belongs to root.
func ofRoot(info fs.FileInfo) bool { return info.Sys().(*syscall.Stat_t).Uid == 0 }

// checkOwner returns an error if a file belongs to neither the user of this process nor root.
func checkOwner(name string, info fs.FileInfo) error {
	owner, user := info.Sys().(*syscall.Stat_t).Uid, os.Geteuid()
	if owner == 0 || int(owner) == user {
		return nil
	}
	return fmt.Errorf("it belongs to user %d, not to user %d of this process or to root: chown %[2]d %s", owner, user, name)
}
