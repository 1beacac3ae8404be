package xdp

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/exclusive"
)

// sourcePorts are the UDP ports from which a device sends on paths to other hosts, and at which it receives the answers.
// Each is held by a kernel socket on every address of the network namespace. So no program can have the port, whatever
// its address or interface.
type sourcePorts struct {
	fds     []int
	numbers []uint16
}

// dropAll passes no packet, so packets that the XDP program leaves to the kernel take no memory of the socket, and the
// kernel sends no port unreachable message for them.
var dropAll = []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}

// reserve takes n free ports of the kernel's ephemeral range (ip_local_port_range). It leaves DefaultPort to adapters that
// are opened later. After an error the caller calls close.
//
// System calls: socket, setsockopt, bind, getsockname.
func (p *sourcePorts) reserve(n int) error {
	for len(p.numbers) < n {
		fd, number, err := reservePort()
		if err != nil {
			return fmt.Errorf("reserve a UDP source port: %w", err)
		}
		if number == DefaultPort {
			defer unix.Close(fd) // after the others, which then have other ports
			continue
		}
		exclusive.Add(fd)
		p.fds, p.numbers = append(p.fds, fd), append(p.numbers, number)
	}
	return nil
}

// reservePort binds a socket to a port that the kernel chooses. The socket is for both families, or for IPv4 on a kernel
// without IPv6.
func reservePort() (fd int, number uint16, err error) {
	var any unix.Sockaddr = &unix.SockaddrInet6{}
	fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		any = &unix.SockaddrInet4{}
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return -1, 0, os.NewSyscallError("socket", err)
	}
	if err = prepareReserved(fd, any); err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, any))
	}
	if err == nil {
		number, err = boundPort(fd)
	}
	if err != nil {
		return -1, 0, errors.Join(err, unix.Close(fd))
	}
	return fd, number, nil
}

// prepareReserved sets the options of a reserving socket. Like a guard it ignores ICMP messages about the path MTU,
// because packets of AF_XDP do not pass it: other programs would use a forged MTU.
func prepareReserved(fd int, any unix.Sockaddr) error {
	program := unix.SockFprog{Len: uint16(len(dropAll)), Filter: &dropAll[0]}
	err := errors.Join(unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program),
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_INTERFACE))
	if _, v6 := any.(*unix.SockaddrInet6); v6 {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_INTERFACE))
	}
	return os.NewSyscallError("setsockopt", err)
}

func boundPort(fd int) (uint16, error) {
	name, err := unix.Getsockname(fd)
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return uint16(a.Port), nil
	case *unix.SockaddrInet6:
		return uint16(a.Port), nil
	}
	return 0, os.NewSyscallError("getsockname", err)
}

// close gives the ports back. A second close does nothing.
func (p *sourcePorts) close() error {
	var errs []error
	for _, fd := range p.fds {
		exclusive.Remove(fd)
		errs = append(errs, unix.Close(fd))
	}
	p.fds = nil
	return errors.Join(errs...)
}
