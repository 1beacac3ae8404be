package route

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync/atomic"
)

// ErrUnreachable reports that no route through the interface leads to an address.
var ErrUnreachable = errors.New("no route to host")

// ErrNoAnswer reports that the kernel has not returned a route in time.
var ErrNoAnswer = errors.New("the kernel has not returned the route in time")

// States of an address that cannot be used.
var (
	// ErrTentative: duplicate address detection has not ended (RFC 4862 section 5.4).
	ErrTentative = errors.New("the address is tentative: duplicate address detection has not ended")
	// ErrDuplicate: duplicate address detection has failed.
	ErrDuplicate = errors.New("the address has failed duplicate address detection: another host of the link has it")
	// ErrNoAddress: no interface has the address.
	ErrNoAddress = errors.New("not an address of this host")
)

// ErrUnsupported reports that this operating system has no netlink.
var ErrUnsupported = errors.New("routes need Linux")

// Interface is the state of the interface at one moment.
type Interface struct {
	Index int
	Name  string
	MTU   int // in bytes of IP packet
	MAC   [6]byte
	Kind  string // kind of a virtual interface, such as "veth" or "ipip"; "device" for a NIC
	Below int    // index of the underlying interface in this namespace; 0 for none
	// Master is the index of the bridge, bond or VRF that the interface belongs to; 0 for none.
	Master int
	// Ethernet means that packets have Ethernet headers.
	Ethernet bool
	Up       bool
	// Carrier means that the driver has a link partner and can transmit.
	Carrier bool
	Addrs   []netip.Prefix // addresses that can be used; IPv6 addresses that are not permanent come last
	// Tentative are the IPv6 addresses for which duplicate address detection has not ended, and Duplicate those for which
	// it has failed (RFC 4862 section 5.4). The kernel sends and receives no packets with them.
	Tentative, Duplicate []netip.Addr
	// Gone says whether the interface has left the namespace; the other fields then keep the last state.
	Gone Fate
}

// Fate says why an interface is gone.
type Fate uint8

// Values of Fate.
const (
	Present Fate = iota
	Deleted
	Moved // to another network namespace
)

// Hop is the current route from one source to one destination. Its methods are lock-free, and any goroutine may call them.
type Hop struct {
	mac    atomic.Uint64 // MAC in the low 48 bits, flag macKnown above
	mtu    atomic.Int64
	source atomic.Pointer[netip.Addr]
	failed atomic.Uint32

	// The table's lock guards the rest.
	flow    flow
	refs    int
	via     *neighbour // nil while there is no route
	known   bool       // the kernel has returned the route; otherwise it is from the table of prefixes, or there is none
	pending *lookup    // for which callers of Resolve wait; nil if there is none
}

// flow is what routes distinguish of UDP packets. Policy rules can select ports. The source address is not valid if the
// kernel chooses it.
type flow struct{ src, dst netip.AddrPort }

// flowOf removes what routes do not distinguish.
func flowOf(src, dst netip.AddrPort) flow {
	plain := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
	}
	return flow{plain(src), plain(dst)}
}

const macKnown = 1 << 63

// MAC returns the Ethernet address of the next hop; ok is false while it is unknown.
func (h *Hop) MAC() (mac [6]byte, ok bool) {
	v := h.mac.Load()
	return unpackMAC(v), v&macKnown != 0
}

func unpackMAC(v uint64) (mac [6]byte) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	copy(mac[:], b[2:])
	return mac
}

func packMAC(mac []byte) uint64 {
	var b [8]byte
	copy(b[2:], mac)
	return binary.BigEndian.Uint64(b[:]) | macKnown
}

// Failures returns how often the kernel has given up the neighbour while its MAC address was unknown, since the hop exists.
func (h *Hop) Failures() uint32 { return h.failed.Load() }

// MTU returns the largest IP packet in bytes for the route. It is the minimum of the MTUs of the route and of the
// interface. A path MTU that ICMP reported does not lower it, because any host can forge the message.
func (h *Hop) MTU() int { return int(h.mtu.Load()) }

// Source returns the local address that the kernel would send from. If the caller has given none, Source is not valid
// while the hop is from Known and the kernel has not returned the route.
func (h *Hop) Source() netip.Addr { return *h.source.Load() }
