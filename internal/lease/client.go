package lease

import (
	"errors"
	"os"
)

// DefaultSocket is where the daemon listens, unless the environment variable SocketVariable names another path.
const (
	DefaultSocket  = "/run/datxdp/datxdpd.sock"
	SocketVariable = "DATXDP_SOCKET"
)

// ErrNoDaemon is the error of Dial if no daemon listens.
var ErrNoDaemon = errors.New("lease: no datxdpd serves this host")

// SocketPath returns the path of the daemon's socket.
func SocketPath() string {
	if path := os.Getenv(SocketVariable); path != "" {
		return path
	}
	return DefaultSocket
}
