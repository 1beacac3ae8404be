package xdp

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/driver"
	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// FindInterface finds the interface that Open opens, in the namespace of the calling thread. It does not accept an
// alternative name, but the error tells the name.
//
// System calls: socket, sendto, recvfrom (netlink).
func FindInterface(name string) (*net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("xdp: list interfaces: %w", err)
	}
	var names []string
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
		names = append(names, all[i].Name)
	}
	if real := route.NameOf(name); real != "" {
		return nil, fmt.Errorf("xdp: %s is another name of %s: use that one: %w", name, real, link.ErrUnsupported)
	}
	return nil, fmt.Errorf("xdp: no interface %q: choose one of %s: %w", name, strings.Join(names, ", "), link.ErrUnsupported)
}

// nic reports the queues and rings of an interface, and a fault of its driver. Tests replace it.
type nic interface {
	channels(name string) (channels, error)
	ring(name string) int
	strayHeader(name string) bool
	Close() error
}

// ethtoolNIC implements the interface nic with the kernel's ethtool ioctls. Its socket belongs to the network namespace
// of the thread that opened it.
type ethtoolNIC struct{ fd int }

// openEthtool opens the socket. System calls: socket.
func openEthtool() (*ethtoolNIC, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("xdp: socket for ethtool: %w", err)
	}
	return &ethtoolNIC{fd}, nil
}

// ring returns the number of slots of the NIC's receive ring, but at most nicFrames. It returns 0 if the driver does
// not report the number.
//
// System calls: ioctl(SIOCETHTOOL).
func (e *ethtoolNIC) ring(name string) int {
	r := ringSizes{cmd: unix.ETHTOOL_GRINGPARAM}
	if ethtoolDo(e.fd, name, &r) != nil {
		return 0
	}
	return int(min(r.rx, nicFrames))
}

// channels returns the numbers of queues. System calls: ioctl(SIOCETHTOOL).
func (e *ethtoolNIC) channels(name string) (channels, error) {
	c := channels{cmd: unix.ETHTOOL_GCHANNELS}
	err := ethtoolDo(e.fd, name, &c)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return channels{combined: 1, maxCombined: 1}, nil // the driver has one queue
	}
	if err != nil {
		return c, fmt.Errorf("xdp: %s: number of queues: %w", name, err)
	}
	return c, nil
}

// strayHeader reports whether the driver sends frames with a wrong header in zero-copy mode.
//
// System calls: ioctl(SIOCETHTOOL), and openat, read and close of a file of proc(5).
func (e *ethtoolNIC) strayHeader(name string) bool {
	info, err := unix.IoctlGetEthtoolDrvinfo(e.fd, name)
	return err == nil && driver.StrayHeader(unix.ByteSliceToString(info.Driver[:]))
}

// Close closes the socket. A second Close does nothing.
func (e *ethtoolNIC) Close() error {
	if e.fd < 0 {
		return nil
	}
	fd := e.fd
	e.fd = -1
	return unix.Close(fd)
}

// receive returns the number of receive queues. most returns the largest number of queues that can be configured.
func (c *channels) receive() int { return int(c.rx + c.combined) }
func (c *channels) most() int    { return max(c.receive(), int(c.maxRx+c.maxCombined)) }

// CheckQueues returns the error with which Open would refuse the interface because of its queues. It returns nil if Open
// would accept them, or if they cannot be read.
//
// System calls: those of ethtool.
func CheckQueues(ifname string, o Options) error {
	e, err := openEthtool()
	if err != nil {
		return nil
	}
	defer e.Close()
	c, err := e.channels(ifname)
	if err != nil {
		return nil
	}
	_, err = c.toOpen(ifname, o.Queues)
	return err
}

// toOpen returns the number of queues to open: the requested number, or all receive queues if that is 0.
func (c *channels) toOpen(name string, asked int) (int, error) {
	rx, tx := c.receive(), int(c.tx+c.combined)
	if rx == 0 {
		return 0, fmt.Errorf("xdp: %s has no receive queue, as a tap has none until a program serves it: start that program, or see ethtool -l %s: %w",
			name, name, link.ErrUnsupported)
	}
	n := rx
	if asked > 0 {
		n = asked
	}
	if n > rx {
		return 0, fmt.Errorf("xdp: %s has %d receive queues, not %d: ask for no more (queues=%[2]d): %[4]w", name, rx, n, link.ErrUnsupported)
	}
	if n > tx {
		return 0, fmt.Errorf("xdp: %s has %d receive and %d transmit queues: make them equal (ethtool -L %s): %w",
			name, rx, tx, name, link.ErrUnsupported)
	}
	return n, nil
}
