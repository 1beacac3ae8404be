package route

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink/nl"
)

// kernelRoute is the kernel's answer to a request.
type kernelRoute struct {
	kind   int // RTN_UNICAST or another
	source netip.Addr
	mtu    int       // 0 if the route has none
	hops   []nextHop // at least one
}

// nextHop is a part of a route. Without a gateway, the next hop is the destination itself.
type nextHop struct {
	index   int // of the interface
	gateway netip.Addr
}

// hop returns the first next hop.
func (r *kernelRoute) hop() nextHop {
	if len(r.hops) == 0 {
		return nextHop{}
	}
	return r.hops[0]
}

// viaTo returns the gateway, or the destination if there is none.
func (r *kernelRoute) viaTo(dst netip.Addr) netip.Addr {
	if gw := r.hop().gateway; gw.IsValid() {
		return gw
	}
	return dst
}

// parseRoute parses a message RTM_NEWROUTE.
func parseRoute(b []byte) (r kernelRoute, err error) {
	if len(b) < syscall.SizeofRtMsg {
		return r, syscall.EBADMSG
	}
	msg := nl.DeserializeRtMsg(b)
	attrs, err := nl.ParseRouteAttr(b[msg.Len():])
	r.kind = int(msg.Type)
	hop := hopOf(0, attrs)
	for _, a := range attrs {
		switch a.Attr.Type {
		case syscall.RTA_OIF:
			hop.index = int(number(a.Value))
		case syscall.RTA_PREFSRC:
			r.source = address(a.Value)
		case syscall.RTA_METRICS:
			r.mtu = mtuOf(a.Value)
		case syscall.RTA_MULTIPATH:
			r.hops = hopsOf(a.Value)
		}
	}
	if len(r.hops) == 0 {
		r.hops = []nextHop{hop}
	}
	return r, err
}

// hopOf returns the next hop through an interface from the attributes of a route or of a part of it.
func hopOf(index int, attrs []syscall.NetlinkRouteAttr) nextHop {
	h := nextHop{index: index}
	for _, a := range attrs {
		switch {
		case a.Attr.Type == syscall.RTA_GATEWAY:
			h.gateway = address(a.Value)
		case a.Attr.Type == rtaVia && len(a.Value) > 2: // struct rtvia: the address follows its family
			h.gateway = address(a.Value[2:])
		}
	}
	return h
}

// hopsOf parses the value of RTA_MULTIPATH, a list of struct rtnexthop.
func hopsOf(b []byte) (all []nextHop) {
	for len(b) >= syscall.SizeofRtNexthop {
		n := nl.DeserializeRtNexthop(b)
		size := int(n.RtNexthop.Len)
		if size < syscall.SizeofRtNexthop || size > len(b) {
			return all
		}
		attrs, _ := nl.ParseRouteAttr(b[syscall.SizeofRtNexthop:size]) // what was parsed before an error
		all = append(all, hopOf(int(n.Ifindex), attrs))
		b = b[min((size+3)&^3, len(b)):]
	}
	return all
}

// mtuOf returns the MTU in the value of RTA_METRICS, or 0.
func mtuOf(b []byte) int {
	const rtaxMTU = 2
	attrs, _ := nl.ParseRouteAttr(b) // what was parsed before an error
	for _, a := range attrs {
		if a.Attr.Type == rtaxMTU {
			return int(number(a.Value))
		}
	}
	return 0
}

// number returns a 32-bit attribute; 0 if it is too short.
func number(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}
