//go:build !unix

package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
)

const nonblock, nofollow = 0, 0

func ofRoot(fs.FileInfo) bool { return false }

// checkOwner refuses every file, because who can access a file is known on Unix only.
func checkOwner(string, fs.FileInfo) error {
	return fmt.Errorf("%w on %s", errors.ErrUnsupported, runtime.GOOS)
}
