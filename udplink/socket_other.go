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

// prober asks the kernel for routes from one address.
type prober struct{ from netip.Addr }

func openProber(from netip.Addr) (*prober, error) { return &prober{from: from}, nil }

// routeMTU says whether there is a route. Its MTU is not known.
func (p *prober) routeMTU(to netip.AddrPort) (int, error) {
	from := netip.AddrPortFrom(p.from, 0)
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(to))
	if err != nil {
		return 0, err
	}
	return 0, conn.Close()
}

func (p *prober) close() {}
