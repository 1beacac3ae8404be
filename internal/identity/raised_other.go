//go:build !linux

package identity

import "os"

// raised reports whether this program has more rights than its user: setuid or setgid.
func raised() bool { return os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() }
