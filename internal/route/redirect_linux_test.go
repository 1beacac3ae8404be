package route

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// redirectCase is a route through a gateway, and a forged redirect of one destination to another host of the link.
type redirectCase struct {
	name         string
	dst          netip.Addr
	gateway, foe netip.Addr
	multipath    bool // the route has a second gateway
}

// A host that forges the source address of a gateway sends an ICMP redirect. The kernel accepts the redirect and sends
// its own packets to the other host. The next hop of a Table must stay the gateway of the route in the routing table.
func TestForgedRedirectChangesNoRoute(t *testing.T) {
	for _, c := range []redirectCase{
		{"v4", netip.MustParseAddr("192.0.2.9"), lab.B.Addr4(), netip.MustParseAddr("10.73.0.66"), false},
		{"v4, two gateways", netip.MustParseAddr("192.0.2.9"), lab.B.Addr4(), netip.MustParseAddr("10.73.0.66"), true},
		{"v6", netip.MustParseAddr("2001:db8::9"), netip.MustParseAddr("fe80::b"), netip.MustParseAddr("fe80::66"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			gateways := w.addRedirectRoute(c)
			if c.multipath {
				c.dst = w.destinationVia(c.gateway, c.dst)
			}
			h := w.resolve(c.dst.String())
			w.acceptRedirect(c)
			got, err := w.table.lookup(flow{dst: anyPort(c.dst)})
			w.must(err)
			if !gateways[got.via] {
				t.Errorf("after the redirect the next hop is %v, want one of %v", got.via, gateways)
			}
			w.table.lookupDue(time.Now().Add(recheck)) // the regular lookup of all routes
			if via := w.gateway(h); !gateways[via] {
				t.Errorf("after the redirect the next hop in use is %v, want one of %v", via, gateways)
			}
		})
	}
}

func (w *world) gateway(h *Hop) netip.Addr {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	return h.via.addr
}

// addRedirectRoute adds the route at side A and gives side B the address of the gateway. It returns the gateways.
func (w *world) addRedirectRoute(c redirectCase) map[netip.Addr]bool {
	w.Helper()
	if c.gateway.Is6() {
		for s, addr := range map[lab.Side]string{lab.A: "fe80::a", lab.B: "fe80::b"} {
			ip := &net.IPNet{IP: net.ParseIP(addr), Mask: net.CIDRMask(64, 128)}
			w.must(w.nl[s].AddrAdd(w.veth[s], &netlink.Addr{IPNet: ip, Flags: syscall.IFA_F_NODAD}))
		}
	}
	gateways := map[netip.Addr]bool{c.gateway: true}
	bits := c.dst.BitLen()
	r := netlink.Route{LinkIndex: w.table.index, Dst: &net.IPNet{IP: c.dst.AsSlice(), Mask: net.CIDRMask(bits-8, bits)}, Gw: c.gateway.AsSlice()}
	r.Dst.IP = r.Dst.IP.Mask(r.Dst.Mask)
	if c.multipath {
		second := netip.MustParseAddr("10.73.0.77")
		gateways[second] = true
		r.LinkIndex, r.Gw = 0, nil
		for _, g := range []netip.Addr{c.gateway, second} {
			r.MultiPath = append(r.MultiPath, &netlink.NexthopInfo{LinkIndex: w.table.index, Gw: g.AsSlice()})
		}
	}
	w.must(w.nl[lab.A].RouteAdd(&r))
	return gateways
}

// destinationVia returns the first destination from dst on for which the kernel uses the gateway. It chooses one of two
// gateways by a hash of the addresses, whose key differs from boot to boot, and accepts redirects of that one only.
func (w *world) destinationVia(gateway, dst netip.Addr) netip.Addr {
	w.Helper()
	for ; ; dst = dst.Next() {
		r, err := w.table.asker.get(flow{anyPort(lab.A.Addr4()), anyPort(dst)}, 0, 0)
		w.must(err)
		if r.viaTo(dst) == gateway {
			return dst
		}
	}
}

// acceptRedirect sends forged redirects from side B until the kernel of side A uses the other host as the next hop.
func (w *world) acceptRedirect(c redirectCase) {
	w.Helper()
	w.on(lab.A, func() error { return labtest.SetNeighbour(lab.Interface, c.foe, net.HardwareAddr{2, 0, 0, 0, 0, 0x66}) })
	targets := w.redirectTargets(c)
	w.until("the kernel accepts the redirect", func() bool {
		for _, target := range targets {
			w.on(lab.B, func() error { return forgeRedirect(c, target) })
		}
		r, err := w.table.asker.get(flow{dst: anyPort(c.dst)}, w.table.index, 0)
		return err == nil && r.viaTo(c.dst) == c.foe
	})
}

// redirectTargets returns addresses of side A. With two gateways, the kernel keeps a redirect for one of them, by a hash
// of the addresses of the ICMP packet. A few more addresses make sure that it is the first gateway for one of them.
func (w *world) redirectTargets(c redirectCase) []net.IPAddr {
	w.Helper()
	if c.gateway.Is6() {
		return []net.IPAddr{{IP: net.ParseIP("fe80::a"), Zone: lab.Interface}}
	}
	targets := []net.IPAddr{{IP: lab.A.Addr4().AsSlice()}}
	for last := byte(101); c.multipath && last < 117; last++ {
		ip := net.IPv4(10, 73, 0, last)
		w.must(w.nl[lab.A].AddrAdd(w.veth[lab.A], &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(24, 32)}}))
		targets = append(targets, net.IPAddr{IP: ip})
	}
	return targets
}

// forgeRedirect sends an ICMP redirect with the source address of the gateway (RFC 792; RFC 4861 §4.5).
func forgeRedirect(c redirectCase, target net.IPAddr) error {
	network := "ip4:icmp"
	source := net.IPAddr{IP: c.gateway.AsSlice()}
	message := redirect4(c)
	if c.gateway.Is6() {
		network, message = "ip6:ipv6-icmp", redirect6(c)
		source.Zone = lab.Interface
	}
	conn, err := net.DialIP(network, &source, &target)
	if err != nil {
		return err
	}
	defer conn.Close()
	if c.gateway.Is6() { // the kernel accepts only redirects with this hop limit, which proves that the sender is on the link
		if err := setHopLimit(conn, 255); err != nil {
			return err
		}
	}
	_, err = conn.Write(message)
	return err
}

// redirect4 quotes an ICMP echo reply to the destination, which belongs to no socket.
func redirect4(c redirectCase) []byte {
	b := append([]byte{5, 1, 0, 0}, c.foe.AsSlice()...)
	b = append(b, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0)
	b = append(append(b, lab.A.Addr4().AsSlice()...), c.dst.AsSlice()...)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
	return b
}

// redirect6 encodes the message for IPv6. The kernel fills in the checksum.
func redirect6(c redirectCase) []byte {
	b := append([]byte{137, 0, 0, 0, 0, 0, 0, 0}, c.foe.AsSlice()...)
	return append(b, c.dst.AsSlice()...)
}

func setHopLimit(conn *net.IPConn, limit int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_UNICAST_HOPS, limit)
	})
	if err != nil {
		return err
	}
	return failed
}
