package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/bpf"
	"github.com/datxdp/datxdp/link"
)

// openError is an error with one sentence for the user, and the errors that errors.Is matches.
type openError struct {
	text string
	is   []error
}

func (e *openError) Error() string   { return e.text }
func (e *openError) Unwrap() []error { return e.is }

const needPrivilege = "needs root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF"

// checkPrivilege returns an error if this process lacks CAP_NET_ADMIN. With CAP_SYS_ADMIN the kernel attaches the program
// all the same, but it resolves no neighbour for such a process: the device would open and reach nobody.
//
// System calls: capget.
func checkPrivilege(name string) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil || data[0].Effective>>unix.CAP_NET_ADMIN&1 == 1 {
		return nil
	}
	return &openError{fmt.Sprintf("xdp: %s: %s", name, needPrivilege), []error{fs.ErrPermission}}
}

// explainAttach turns an error of bpf.Attach into a sentence that says what to do about it.
func explainAttach(name string, mtu int, err error) error {
	why := strings.TrimPrefix(err.Error(), "bpf: ")
	switch {
	case errors.Is(err, bpf.ErrPrivilege):
		return &openError{fmt.Sprintf("xdp: %s: %s", name, needPrivilege), []error{fs.ErrPermission, err}}
	case errors.Is(err, fs.ErrNotExist):
		return &openError{fmt.Sprintf("xdp: %s: %s: mount proc(5) at /proc and sysfs(5) at /sys", name, why), []error{err}}
	case errors.Is(err, bpf.ErrForeign):
		return &openError{fmt.Sprintf("xdp: %s: detach it, or choose another interface", why), []error{link.ErrBusy, err}}
	case errors.Is(err, bpf.ErrBusy):
		return &openError{fmt.Sprintf("xdp: %s: stop that program, choose another interface, or use kernel UDP beside it (udp:ADDRESS port=N)", why),
			[]error{link.ErrBusy, err}}
	case errors.Is(err, bpf.ErrUnsupported):
		return &openError{fmt.Sprintf("xdp: %s: choose generic mode", why), []error{link.ErrUnsupported, err}}
	case errors.Is(err, bpf.ErrRefused) && mtu > plainMTU:
		return &openError{fmt.Sprintf("xdp: %s at MTU %d: lower the MTU (ip link set dev %s mtu %d), or choose generic mode", why, mtu, name, plainMTU),
			[]error{link.ErrUnsupported, err}}
	case errors.Is(err, bpf.ErrRefused):
		return &openError{fmt.Sprintf("xdp: %s: remove the cause, or choose generic mode", why), []error{link.ErrUnsupported, err}}
	}
	return fmt.Errorf("xdp: %w", err)
}

// explainSocket turns an error of socket(AF_XDP) into a sentence that says what to do about it.
func explainSocket(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return &openError{"socket(AF_XDP) is not permitted: it " + needPrivilege + ", and a seccomp profile that allows it", []error{fs.ErrPermission, err}}
	case errors.Is(err, unix.EAFNOSUPPORT):
		return &openError{"the kernel has no AF_XDP (CONFIG_XDP_SOCKETS)", []error{link.ErrUnsupported, err}}
	}
	return fmt.Errorf("socket(AF_XDP): %w", err)
}

// plainMTU is an MTU at which every driver keeps a packet in one frame. A lower MTU does not help.
const plainMTU = 1500

// explainBind turns an error of bind into a sentence that says what to do about it.
func explainBind(m Mode, mtu int, err error) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return &openError{"another AF_XDP socket has the queue: stop its program, or choose another interface", []error{link.ErrBusy, err}}
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPROTONOSUPPORT):
		text := fmt.Sprintf("the driver or the kernel does not grant %s mode at this MTU (%v): choose another mode, or lower the MTU", m, err)
		if mtu <= plainMTU {
			text = fmt.Sprintf("the driver or the kernel does not grant %s mode (%v): choose another mode", m, err)
		}
		return &openError{text, []error{link.ErrUnsupported, err}}
	}
	return fmt.Errorf("bind: %w", err)
}
