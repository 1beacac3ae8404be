package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// pathSizes are the sizes of IP packets to try, besides the MTU of the interface: the MTUs of common networks and
// tunnels.
var pathSizes = []int{576, 1280, 1380, 1400, 1420, 1450, 1472, 1480, 1492, 1500, 2000, 3000, 3498, 4000, 4470, 8000, 8900, 9000, 9216, 16000, 32000}

const (
	echoHeader = 8
	// echoLimit limits the wait for the first reply.
	echoLimit = time.Second
	// echoTail is the time that the other replies may take after the first.
	echoTail = 100 * time.Millisecond
)

// echoFamily has the differences between ICMP and ICMPv6.
type echoFamily struct {
	domain, proto, ipHeader int
	request, reply          icmp.Type
	level, discover, probe  int
}

func familyOf(a netip.Addr) echoFamily {
	if a.Is4() {
		return echoFamily{unix.AF_INET, unix.IPPROTO_ICMP, 20, ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply,
			unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE}
	}
	return echoFamily{unix.AF_INET6, unix.IPPROTO_ICMPV6, 40, ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply,
		unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE}
}

// largestEcho returns the largest size of an IP packet that a host can be asked to echo.
func largestEcho(a netip.Addr) int {
	if a.Is4() {
		return 65535
	}
	return 65535 + 40
}

// largestPing sends echo requests of many sizes at once, with the don't-fragment bit. It returns the size of the
// largest IP packet that was answered, and the index of the interface through which an answer has arrived; 0 if there was
// none. It returns an error if this process is not allowed to ping.
//
// System calls: socket, setsockopt, bind, sendto, recvmsg.
func largestPing(ctx context.Context, own origin, to netip.Addr, mtu int) (size, arrived int, err error) {
	sizes := slices.DeleteFunc(append(slices.Clone(pathSizes), min(mtu, largestEcho(to))), func(n int) bool { return n > mtu })
	return familyOf(to).ping(ctx, own, to, sizes)
}

// ping sends echo requests of some sizes, and returns what largestPing returns.
func (f echoFamily) ping(ctx context.Context, own origin, to netip.Addr, sizes []int) (size, arrived int, err error) {
	c, raw, err := f.open(own)
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var requests sync.WaitGroup
	defer requests.Wait() // Close ends a request that waits for room in the send buffer
	defer c.Close()
	defer cancel()
	requests.Go(func() { f.send(ctx, c, to, sizes) })
	size, arrived = f.receive(ctx, c, raw, to, slices.Max(sizes))
	return size, arrived, nil
}

// open opens a socket for pings: an unprivileged ICMP socket if the host allows it, otherwise a raw socket.
func (f echoFamily) open(own origin) (c net.PacketConn, raw bool, err error) {
	for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW} {
		fd, serr := unix.Socket(f.domain, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, f.proto)
		if serr != nil {
			err = fmt.Errorf("ping needs CAP_NET_RAW: %w", serr)
			continue
		}
		c, err = f.prepare(fd, own)
		return c, kind == unix.SOCK_RAW, err
	}
	return nil, false, err
}

func (f echoFamily) prepare(fd int, own origin) (net.PacketConn, error) {
	file := os.NewFile(uintptr(fd), "ping")
	defer file.Close() // FilePacketConn duplicates the descriptor
	if err := unix.SetsockoptInt(fd, f.level, f.discover, f.probe); err != nil {
		return nil, err
	}
	if err := own.bind(fd); err != nil {
		return nil, err
	}
	local := own.Addr()
	var at unix.Sockaddr = &unix.SockaddrInet6{Addr: local.As16(), ZoneId: zoneID(local)}
	if local.Is4() {
		at = &unix.SockaddrInet4{Addr: local.As4()}
	}
	if err := unix.Bind(fd, at); err != nil {
		return nil, err
	}
	return net.FilePacketConn(file)
}

// zoneID returns the index of the interface that the zone of an address names; 0 if there is none.
func zoneID(a netip.Addr) uint32 {
	if l, err := netlink.LinkByName(a.Zone()); a.Zone() != "" && err == nil { // by any of its names, as the links do
		return uint32(l.Attrs().Index)
	}
	n, _ := strconv.ParseUint(a.Zone(), 10, 32) // 0 if it is no number
	return uint32(n)
}

// id returns the identifier of our echo requests. On an unprivileged socket the kernel sets another one.
func id() int { return os.Getpid() & 0xffff }

// send sends two requests of every size, because a packet may be lost.
func (f echoFamily) send(ctx context.Context, c net.PacketConn, to netip.Addr, sizes []int) {
	for seq := range 2 * len(sizes) {
		size := sizes[seq%len(sizes)]
		m := icmp.Message{Type: f.request, Body: &icmp.Echo{ID: id(), Seq: seq, Data: make([]byte, max(0, size-f.ipHeader-echoHeader))}}
		b, err := m.Marshal(nil)
		if err != nil || ctx.Err() != nil {
			return
		}
		_, _ = c.WriteTo(b, f.addr(c, to)) // a packet that is too large for this host is not answered either
	}
}

// addr converts an address to the type that the socket needs.
func (echoFamily) addr(c net.PacketConn, to netip.Addr) net.Addr {
	if _, ip := c.(*net.IPConn); ip {
		return &net.IPAddr{IP: to.AsSlice(), Zone: to.Zone()}
	}
	return &net.UDPAddr{IP: to.AsSlice(), Zone: to.Zone()}
}

// reader returns a function that receives a packet, and the index of the interface through which it has arrived.
func reader(c net.PacketConn, v6 bool) func([]byte) (n, arrived int, from net.Addr, err error) {
	if v6 {
		p := ipv6.NewPacketConn(c)
		_ = p.SetControlMessage(ipv6.FlagInterface, true) // the index stays 0 on an error
		return func(b []byte) (int, int, net.Addr, error) {
			n, cm, from, err := p.ReadFrom(b)
			if cm == nil {
				return n, 0, from, err
			}
			return n, cm.IfIndex, from, err
		}
	}
	p := ipv4.NewPacketConn(c)
	_ = p.SetControlMessage(ipv4.FlagInterface, true) // the index stays 0 on an error
	return func(b []byte) (int, int, net.Addr, error) {
		n, cm, from, err := p.ReadFrom(b)
		if cm == nil {
			return n, 0, from, err
		}
		return n, cm.IfIndex, from, err
	}
}

// receive receives replies until the largest has arrived, or until none arrives for a while.
func (f echoFamily) receive(ctx context.Context, c net.PacketConn, raw bool, from netip.Addr, most int) (largest, arrived int) {
	read := reader(c, from.Is6())
	end := time.Now().Add(echoLimit)
	if limit, bounded := ctx.Deadline(); bounded && limit.Before(end) {
		end = limit
	}
	buf := make([]byte, 1<<16+128)
	for largest < most && ctx.Err() == nil {
		if err := c.SetReadDeadline(end); err != nil {
			return largest, arrived
		}
		n, index, who, err := read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return largest, arrived
		}
		if err != nil || !f.ours(buf[:max(n, 0)], who, raw, from) {
			continue
		}
		largest, arrived = max(largest, n+f.ipHeader), index
		if soon := time.Now().Add(echoTail); soon.Before(end) {
			end = soon
		}
	}
	return largest, arrived
}

// ours reports whether a packet is a reply to one of our requests.
func (f echoFamily) ours(b []byte, who net.Addr, raw bool, from netip.Addr) bool {
	m, err := icmp.ParseMessage(f.proto, b)
	if err != nil || m.Type != f.reply {
		return false
	}
	echo, is := m.Body.(*icmp.Echo)
	return is && (!raw || echo.ID == id()) && sender(who) == from.WithZone("")
}

func sender(who net.Addr) netip.Addr {
	var ip net.IP
	switch a := who.(type) {
	case *net.UDPAddr:
		ip = a.IP
	case *net.IPAddr:
		ip = a.IP
	}
	addr, _ := netip.AddrFromSlice(ip)
	return addr.Unmap()
}
