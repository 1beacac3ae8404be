package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
)

// firstActivated is the first descriptor that systemd passes (sd_listen_fds(3)).
const firstActivated = 3

// activated returns the socket that systemd made, or nil if it made none for this process.
func activated() (*net.UnixListener, error) {
	pid, fds := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name) // not for processes that this one starts
	}
	if pid != strconv.Itoa(os.Getpid()) || fds == "" {
		return nil, nil
	}
	if fds != "1" {
		return nil, fmt.Errorf("systemd passes %s sockets, want 1", fds)
	}
	f := os.NewFile(firstActivated, "activated")
	defer f.Close() // FileListener has duplicated it
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("the socket of systemd: %w", err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok || u.Addr().Network() != "unixpacket" {
		return nil, errors.Join(fmt.Errorf("the socket of systemd is %s: write ListenSequentialPacket= in the unit", l.Addr().Network()), l.Close())
	}
	return u, nil
}

// notify tells systemd a state, if it asked for states (sd_notify(3)).
func notify(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // @ begins an abstract name
	if err != nil {
		return fmt.Errorf("telling systemd: %w", err)
	}
	defer c.Close()
	_, err = c.Write([]byte(state))
	return err
}
