package lab

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// offloads are the ethtool commands for segmentation, coalescing and checksum offloads. Checksums come first, because
// TSO can only be switched on after them.
var offloads = []struct {
	name string
	set  uint32
}{
	{"rx-checksum", unix.ETHTOOL_SRXCSUM},
	{"tx-checksum", unix.ETHTOOL_STXCSUM},
	{"tso", unix.ETHTOOL_STSO},
	{"gso", unix.ETHTOOL_SGSO},
	{"gro", unix.ETHTOOL_SGRO},
}

// SetOffloads switches TSO, GSO, GRO and checksum offloads of both ends. They are on in a new veth; the kernel then
// sends 64 KiB super-frames with partial checksums.
//
// System calls: ioctl(SIOCETHTOOL) inside each namespace.
func (l *Lab) SetOffloads(on bool) error {
	return l.each(func(s Side, _ *end) error {
		return l.Do(s, func() error { return setOffloads(on) })
	})
}

func setOffloads(on bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("lab: ethtool socket: %w", err)
	}
	defer unix.Close(fd)
	var data uint32
	if on {
		data = 1
	}
	for _, o := range offloads {
		if _, err := ethtool(fd, Interface, o.set, data); err != nil {
			return fmt.Errorf("lab: ethtool: set %s of %s to %d: %w", o.name, Interface, data, err)
		}
	}
	return nil
}
