package xdp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/bpf"
	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// identify opens the routing tables and fills in the identity of the interface.
func (d *Device) identify(o *Options) (h host, err error) {
	if d.routes, err = route.Open(d.ifindex); err != nil {
		return h, fmt.Errorf("xdp: %s: routes: %w", d.name, err)
	}
	local, now, err := awaitAddr(d.name, d.routes.Refresh, o.Addr)
	if err != nil {
		return h, err
	}
	if err := refuseLayer(&now, local); err != nil {
		return h, err
	}
	d.local, d.mtu = local, min(now.MTU, maxPacket)
	d.served.now.Store(newServed(local, nil, now.Addrs))
	return host{mac: now.MAC, local: netip.AddrPortFrom(local, o.Port), served: &d.served, mtu: d.mtu, router: routes{d.routes}}, nil
}

// takePort binds a kernel UDP socket, the guard, to the port while the device is open. No other program can then bind
// the port. The guard also keeps the kernel from sending port unreachable messages when the XDP program passes on
// packets to this port.
func (d *Device) takePort(local netip.AddrPort) (err error) {
	d.guard, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	if errors.Is(err, unix.EADDRINUSE) {
		return d.explainPort(local, err)
	}
	if err != nil {
		return fmt.Errorf("xdp: %s: %w", d.name, err)
	}
	_ = d.guard.SetReadBuffer(0) // nothing reads this socket: use the smallest buffer
	return d.ignoreICMPMTU(local.Addr())
}

// explainPort turns the error about a port in use into a sentence that says what to do about it. Another port helps only
// if the interface has no XDP program: two adapters cannot share an interface.
func (d *Device) explainPort(local netip.AddrPort, err error) error {
	if occupied := bpf.Occupied(d.ifindex); errors.Is(occupied, bpf.ErrBusy) || errors.Is(occupied, bpf.ErrForeign) {
		return explainAttach(d.name, d.mtu, fmt.Errorf("bpf: %s: %w: %w", d.name, occupied, err))
	}
	return &openError{
		text: fmt.Sprintf("xdp: %s: another program has UDP port %d of %v: stop it or choose another with the option port=", d.name, local.Port(), local.Addr()),
		is:   []error{link.ErrBusy, err},
	}
}

// ignoreICMPMTU makes the kernel ignore ICMP messages about the guard socket's path MTU. The guard sends nothing, so
// any such message is forged. Without the socket option, the kernel would accept such a message, and other programs of
// the host would use a false MTU to the peer for ten minutes. The device itself uses the MTU of the route in the
// routing table.
//
// System calls: setsockopt.
func (d *Device) ignoreICMPMTU(local netip.Addr) error {
	level, option, value := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_INTERFACE
	if local.Is6() {
		level, option, value = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_INTERFACE
	}
	raw, err := d.guard.SyscallConn()
	if err == nil {
		var refused error
		err = raw.Control(func(fd uintptr) { refused = unix.SetsockoptInt(int(fd), level, option, value) })
		err = errors.Join(err, refused)
	}
	if err != nil {
		return fmt.Errorf("xdp: %s: ignore ICMP path MTU messages: %w", d.name, err)
	}
	return nil
}
