package lease

import (
	"fmt"
	"net"
	"syscall"
)

// subjectOf returns who opened a connection. The kernel recorded it then, so a process that has connected and hands the
// connection to another one hands over its rights too.
func subjectOf(c *net.UnixConn) (who Subject, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return who, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var u *syscall.Ucred
		if u, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); failed != nil {
			return
		}
		who.Holder = Holder{u.Uid, u.Gid, u.Pid}
		who.Groups, failed = peerGroups(int(fd))
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return who, fmt.Errorf("lease: credentials of a client: %w", err)
	}
	return who, nil
}
