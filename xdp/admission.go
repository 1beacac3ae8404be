package xdp

import "net/netip"

// admission filters received packets by IP address. It admits packets that are addressed to us and that we can answer.
type admission struct {
	own4     []uint32
	own6     [][16]byte
	martian4 []uint32 // IPv4 source addresses to refuse: own4, and the broadcast addresses of our subnets
}

func newAdmission(own, broadcasts []netip.Addr) (f admission) {
	for _, a := range own {
		if a = a.Unmap(); a.Is4() {
			f.own4 = append(f.own4, word4(a))
		} else {
			f.own6 = append(f.own6, a.As16())
		}
	}
	f.martian4 = append(f.martian4, f.own4...)
	for _, a := range broadcasts {
		f.martian4 = append(f.martian4, word4(a))
	}
	return f
}

func word4(a netip.Addr) uint32 {
	b := a.As4()
	return be.Uint32(b[:])
}

// admits reports whether a packet is addressed to us and comes from the unicast address of another host. h begins with
// the IP header. Martian source addresses (RFC 1812 §5.3.7) are refused: our own addresses, multicast, broadcast,
// loopback and 0.0.0.0.
func (f *admission) admits(h []byte, v6 bool) bool {
	if v6 {
		return f.admits6(h)
	}
	src, dst := be.Uint32(h[v4Src:]), be.Uint32(h[v4Dst:])
	return has4(f.own4, dst) && !has4(f.martian4, src) &&
		src != 0 && src != 0xffffffff && src>>24 != 127 && src>>28 != 0xe
}

func (f *admission) admits6(h []byte) bool {
	src, dst := (*[16]byte)(h[v6Src:]), (*[16]byte)(h[v6Dst:])
	if !has6(f.own6, dst) || has6(f.own6, src) || src[0] == 0xff {
		return false
	}
	high, low := be.Uint64(src[:]), be.Uint64(src[8:])
	return high != 0 || low > 1 && low>>32 != 0xffff // ::, ::1, ::ffff:0:0/96
}

func has4(set []uint32, a uint32) bool {
	for _, have := range set {
		if have == a {
			return true
		}
	}
	return false
}

func has6(set [][16]byte, a *[16]byte) bool {
	for i := range set {
		if set[i] == *a {
			return true
		}
	}
	return false
}

// broadcasts returns the broadcast addresses of the IPv4 subnets (RFC 919). A subnet of one or two hosts has no
// broadcast address (RFC 3021).
func broadcasts(subnets []netip.Prefix) (all []netip.Addr) {
	for _, p := range subnets {
		if !p.Addr().Is4() || p.Bits() >= 31 {
			continue
		}
		b := p.Addr().As4()
		be.PutUint32(b[:], be.Uint32(b[:])|(1<<(32-p.Bits())-1))
		all = append(all, netip.AddrFrom4(b))
	}
	return all
}
