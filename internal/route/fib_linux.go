package route

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
)

// FIB reads the kernel's routing tables (the forwarding information base). It needs no privilege. Any goroutine may
// call MTU until Close.
type FIB struct{ handle *netlink.Handle }

// OpenFIB opens a netlink socket in the network namespace of the calling thread. MTU uses that namespace on any thread.
//
// System calls: socket, bind (netlink).
func OpenFIB() (*FIB, error) {
	h, err := netlink.NewHandle(syscall.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("route: open netlink socket: %w", err)
	}
	if err := h.SetSocketTimeout(requestTimeout); err != nil {
		h.Close()
		return nil, fmt.Errorf("route: set netlink timeout: %w", err)
	}
	return &FIB{handle: h}, nil
}

// MTU returns the largest IP packet in bytes for the route from one address to another. It is the minimum of the MTUs of
// the route and of its interface. It does not depend on ICMP messages, which any host can forge. ifindex is the
// interface of link-local addresses, and 0 for other addresses.
//
// System calls: sendto, recvfrom (netlink).
func (f *FIB) MTU(from, to netip.Addr, ifindex int) (int, error) {
	r, err := routeTo(f.handle, to, netlink.RouteGetOptions{SrcAddr: from.AsSlice(), OifIndex: ifindex})
	if err != nil {
		return 0, fmt.Errorf("route: resolve %v from %v: %w", to, from, err)
	}
	out, err := f.handle.LinkByIndex(r.LinkIndex)
	if err != nil {
		return 0, fmt.Errorf("route: read interface %d: %w", r.LinkIndex, err)
	}
	return limitMTU(out.Attrs().MTU, r.MTU), nil
}

// Close closes the socket.
func (f *FIB) Close() { f.handle.Close() }

// limitMTU returns the MTU of a route through an interface; the MTU of the route is 0 if it has none.
func limitMTU(device, route int) int {
	if route > 0 {
		return min(device, route)
	}
	return device
}

// routeTo asks the kernel for the route to an address.
//
// It makes two requests. The first (FIBMatch) shows whether the routing tables have a route, and which MTU it has. The
// second returns the source address and the interface, but it cannot show whether a route exists: if a request names an
// interface and there is no route, the kernel invents an on-link IPv4 route. The MTU in the second answer is not used:
// it may come from a route exception, which an ICMP message made (RFC 1191, RFC 8201). The kernel accepts messages about
// the packets of any socket, and about ICMP packets without a socket.
//
// System calls: sendto, recvfrom (netlink).
func routeTo(h *netlink.Handle, dst netip.Addr, o netlink.RouteGetOptions) (netlink.Route, error) {
	o.FIBMatch = true
	entry, err := routeGet(h, dst, &o)
	if err != nil {
		return entry, err
	}
	o.FIBMatch = false
	r, err := routeGet(h, dst, &o)
	r.MTU = entry.MTU
	return r, err
}

// routeGet makes one request. It fails with ESRCH if the answer is empty.
func routeGet(h *netlink.Handle, dst netip.Addr, o *netlink.RouteGetOptions) (netlink.Route, error) {
	routes, err := h.RouteGetWithOptions(dst.AsSlice(), o)
	if err == nil && len(routes) == 0 {
		err = syscall.ESRCH
	}
	if err != nil {
		return netlink.Route{}, err
	}
	return routes[0], nil
}
