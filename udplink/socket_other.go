//go:build !linux

package udplink

import (
	"net"
	"net/netip"
)

// sockaddr has no use outside Linux.
type sockaddr struct{}

func makeSockaddr(netip.AddrPort) sockaddr { return sockaddr{} }

func openSocket(l *Link, o Options) (socket, error) { return openPortable(l, o) }

// routeMTU says whether there is a route. Its MTU is not known.
func routeMTU(from netip.Addr, to netip.AddrPort) (int, error) {
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), net.UDPAddrFromAddrPort(to))
	if err != nil {
		return 0, err
	}
	return 0, conn.Close()
}
