//go:build !linux

package udplink

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/datxdp/datxdp/link"
)

// sockaddr is not used outside Linux.
type sockaddr struct{}

func makeSockaddr(netip.AddrPort, uint32) sockaddr { return sockaddr{} }

func openSocket(l *Link, o Options) (socket, error) { return openPortable(l, o) }

// routeQuery asks the kernel for routes from one address.
type routeQuery struct{ from netip.Addr }

func openRouteQuery(from netip.Addr, device string, _ int) (*routeQuery, error) {
	if device != "" {
		return nil, fmt.Errorf("bind to interface %s: %w", device, link.ErrUnsupported)
	}
	return &routeQuery{from: from}, nil
}

// query fails if there is no route. Otherwise it returns 0, because the MTU is unknown.
func (p *routeQuery) query(to netip.AddrPort) (mtu int, zone uint32, err error) {
	from := netip.AddrPortFrom(p.from, 0)
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(to))
	if err != nil {
		return 0, 0, err
	}
	return 0, 0, conn.Close()
}

func (p *routeQuery) close() {}

// presence returns nil: it is unknown whether the host has the address.
func (l *Link) presence() presence { return nil }
