package route

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync/atomic"
)

// ErrUnreachable says that no route through the interface leads to an address.
var ErrUnreachable = errors.New("no route to host")

// ErrUnsupported says that this operating system has no netlink.
var ErrUnsupported = errors.New("routes need Linux")

// Interface is the state of the interface at one moment.
type Interface struct {
	Index int
	Name  string
	MTU   int // bytes of IP packet
	MAC   [6]byte
	Kind  string // of a virtual interface: "veth", "ipip"; "device" for a NIC
	Below int    // index of the interface of this namespace that it is on top of, 0 for none
	// Ethernet says that its packets have Ethernet headers.
	Ethernet bool
	Up       bool
	// Carrier says that the driver has a link partner and can transmit.
	Carrier bool
	Addrs   []netip.Prefix
	// Gone says what became of an interface that is no longer in the namespace; the rest is its last state.
	Gone Fate
}

// Fate is where an interface went.
type Fate uint8

// Where an interface went.
const (
	Present Fate = iota
	Deleted
	Moved // to another network namespace
)

// Hop is how packets reach one destination now. Its methods are lock-free and may be called by any
// goroutine.
type Hop struct {
	mac    atomic.Uint64 // the address in the low 48 bits, macKnown above
	mtu    atomic.Int64
	source atomic.Pointer[netip.Addr]

	// The table's lock guards the rest.
	dst  netip.Addr
	refs int
	via  *neighbour // nil while there is no route
}

const macKnown = 1 << 63

// MAC is the Ethernet address of the next hop; ok is false while it is unknown.
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

// MTU is the largest IP packet in bytes that the path is known to carry: the least of the MTUs of
// route and interface and of what routers reported.
func (h *Hop) MTU() int { return int(h.mtu.Load()) }

// Source is the local address that the kernel would send from.
func (h *Hop) Source() netip.Addr { return *h.source.Load() }
