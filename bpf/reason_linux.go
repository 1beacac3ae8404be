//go:build amd64 || arm64

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Constants of linux/netlink.h, linux/if_link.h and linux/socket.h that package syscall does not have.
const (
	solNetlink       = 270
	netlinkCapAck    = 10 // errors do not contain the request, so that attributes follow the header
	netlinkExtAck    = 11
	nlmsgerrAttrMsg  = 1
	iflaXDPFD        = 1
	iflaXDPFlags     = 3
	nlaNested        = 1 << 15
	xdpUpdateNoExist = 1 << 0
	sizeofNlmsgerr   = 4 + syscall.SizeofNlMsghdr
)

// reason returns the driver's message about why it refuses the program; "" if there is none. BPF_LINK_CREATE does not
// return this message, so reason tries to attach the program again over netlink, which does. If the driver accepts the
// program this time, reason detaches it at once.
//
// System calls: socket, bind, sendto, recvfrom of netlink (RTM_SETLINK), close.
func reason(ifindex, program int, flags uint32) string {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return ""
	}
	defer syscall.Close(fd)
	for _, option := range []int{netlinkCapAck, netlinkExtAck} {
		if err := syscall.SetsockoptInt(fd, solNetlink, option, 1); err != nil {
			return ""
		}
	}
	text, err := setXDP(fd, ifindex, program, flags|xdpUpdateNoExist)
	if err == nil {
		_, _ = setXDP(fd, ifindex, -1, flags) // the program was attached a moment ago
		return ""
	}
	return text
}

// setXDP attaches a program to an interface; with program -1 it detaches the interface's program. text is the message
// that comes with an error. The kernel answers before sendto returns, so the receive does not wait.
func setXDP(netlink, ifindex, program int, flags uint32) (text string, err error) {
	to := &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}
	if err := syscall.Sendto(netlink, setXDPRequest(ifindex, program, flags), 0, to); err != nil {
		return "", err
	}
	answer := make([]byte, syscall.Getpagesize())
	n, _, err := syscall.Recvfrom(netlink, answer, syscall.MSG_DONTWAIT)
	if err != nil {
		return "", err
	}
	return errorIn(answer[:n])
}

// setXDPRequest encodes RTM_SETLINK with a nested IFLA_XDP.
func setXDPRequest(ifindex, program int, flags uint32) []byte {
	const attr = syscall.SizeofRtAttr + 4
	const size = syscall.SizeofNlMsghdr + syscall.SizeofIfInfomsg + syscall.SizeofRtAttr + 2*attr
	e := binary.NativeEndian
	b := e.AppendUint32(make([]byte, 0, size), size)
	b = e.AppendUint16(b, syscall.RTM_SETLINK)
	b = e.AppendUint16(b, syscall.NLM_F_REQUEST|syscall.NLM_F_ACK)
	b = append(b, make([]byte, 8+ifinfomsgIndex)...) // sequence number, port; family, type
	b = e.AppendUint32(b, uint32(ifindex))
	b = append(b, make([]byte, 8)...) // flags, change
	b = e.AppendUint16(b, syscall.SizeofRtAttr+2*attr)
	b = e.AppendUint16(b, iflaXDP|nlaNested)
	for _, a := range []struct {
		kind  uint16
		value uint32
	}{{iflaXDPFD, uint32(program)}, {iflaXDPFlags, flags}} {
		b = e.AppendUint16(b, attr)
		b = e.AppendUint16(b, a.kind)
		b = e.AppendUint32(b, a.value)
	}
	return b
}

// errorIn decodes an NLMSG_ERROR. An error number of zero is an acknowledgement.
func errorIn(b []byte) (text string, err error) {
	const body = syscall.SizeofNlMsghdr
	if len(b) < body+sizeofNlmsgerr || binary.NativeEndian.Uint16(b[4:]) != syscall.NLMSG_ERROR {
		return "", fmt.Errorf("bpf: netlink: answer of %d bytes", len(b))
	}
	errno := -int32(binary.NativeEndian.Uint32(b[body:]))
	if errno == 0 {
		return "", nil
	}
	eachAttr(b[body+sizeofNlmsgerr:], func(kind uint16, value []byte) {
		if kind == nlmsgerrAttrMsg {
			text = strings.TrimRight(string(value), "\x00")
		}
	})
	return text, syscall.Errno(errno)
}

// attachFailure reports why a program is not attached: the error number and, if there is one, the driver's message.
type attachFailure struct {
	ifname string
	mode   Mode
	reason string
	err    error // for errors.Is
}

func (e *attachFailure) Error() string {
	what := e.err.Error()
	if errno := syscall.Errno(0); errors.As(e.err, &errno) {
		what = errno.Error()
	}
	if e.reason != "" {
		what = fmt.Sprintf("%s (%s)", e.reason, what)
	}
	return fmt.Sprintf("bpf: attach to %s in %s mode: %s", e.ifname, e.mode, what)
}

func (e *attachFailure) Unwrap() error { return e.err }
