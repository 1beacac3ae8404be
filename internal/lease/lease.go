package lease

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"time"
)

// Mode is the kind of a lease.
type Mode string

const (
	// Shared: the client has a socket of its own on a veth. Programs in the kernel deliver its packets, and check those
	// that it sends. Many clients can have one interface.
	Shared Mode = "shared"
	// Direct: the client has the sockets of the interface's own queues. Nothing checks what it sends. One client has the
	// interface.
	Direct Mode = "direct"
)

// Errors of a Kernel, of the policy and of a Server. A Client returns them too, wrapped in the text of the daemon.
var (
	ErrDenied    = errors.New("the policy does not allow it")
	ErrVersion   = errors.New("client and daemon have different versions")
	ErrInvalid   = errors.New("the request is invalid")
	ErrInterface = errors.New("the interface cannot be leased")
	ErrBusy      = errors.New("another program has the interface")
	ErrTaken     = errors.New("another lease listens on the qualifier")
	ErrLimit     = errors.New("a limit is reached")
	ErrNoRoute   = errors.New("no route to the address")
	ErrNoLease   = errors.New("there is no such lease")
	ErrFailed    = errors.New("the daemon failed")
)

// Request asks for a lease. A zero number selects the daemon's default.
type Request struct {
	Interface string
	Mode      Mode
	Addr      netip.Addr // own address; the zero Addr selects the interface's first one
	Frames    uint32     // frames in the UMEM of each socket, a power of two
	FrameSize uint32     // bytes: 2048 or 4096
	Memory    uint64     // bytes of the consumers' memory behind the frames of each UMEM (xdp.Options.Memory)
	Rings     Rings
	Engines   uint32 // engine numbers (the upper 8 bits of a connection ID), one for each socket or more
	Ports     uint32 // source ports, a power of two
}

// Rings has the sizes of a socket's rings in slots, powers of two.
type Rings struct {
	Rx, Tx, Fill, Completion uint32
}

// Holder is the process that has a lease, as the kernel names the peer of a Unix socket (SO_PEERCRED).
type Holder struct {
	UID, GID uint32
	PID      int32 // 0 if the process is in a PID namespace that the daemon's does not include
}

// Limits are what the policy allows a lease, beyond the policy's own counts.
type Limits struct {
	// Rate is the largest number of bytes a second that the lease may send; 0 is no limit.
	Rate uint64
	// Weight is the lease's share of the interface beside other leases; 0 is the default weight.
	Weight uint32
}

// Grant describes a lease. Its fields are facts of the host, which the client cannot change.
type Grant struct {
	ID        uint32 // of the lease, unique on the host while it exists; not 0
	Interface string
	Ifindex   int // of Interface, in the daemon's network namespace
	Mode      Mode
	Attach    string // mode of the sockets as the kernel granted it: zero-copy, copy, generic
	MTU       int    // bytes, of Interface
	MAC       [6]byte
	Addr      netip.Addr     // own address
	Addresses []netip.Prefix // of Interface, Addr included
	Port      uint16         // UDP port of the host, at which all leases are reached
	Ports     []uint16       // source ports that belong to the lease
	// FirstEngine and Engines are the range of engine numbers of the lease.
	FirstEngine, Engines uint32
	Frames, FrameSize    uint32
	Memory               uint64
	Rings                Rings
	MultiBuffer          bool // the sockets take packets of several frames (XDP_USE_SG)
	// Sockets are bound AF_XDP sockets, one for each queue. Memory of the UMEM of Sockets[i] is UMEMs[i], a sealed memfd:
	// Frames frames of FrameSize bytes, then Memory bytes. Who receives a Grant owns the files and closes them.
	Sockets, UMEMs []*os.File
}

// Close closes the files of the grant.
func (g *Grant) Close() {
	for _, f := range append(g.Sockets, g.UMEMs...) {
		f.Close()
	}
	g.Sockets, g.UMEMs = nil, nil
}

// Route is the path that the daemon's host takes to an address.
type Route struct {
	From netip.Addr // own address
	MTU  int        // bytes, of an IP packet
}

// Held describes a lease that exists.
type Held struct {
	ID        uint32
	Interface string
	Mode      Mode
	Holder    Holder
	Bytes     uint64 // locked memory of its UMEMs
	Since     time.Time
}

// Kernel makes leases of the interfaces of a host. Its methods may be called by any goroutine; those for one lease are
// called one after another.
type Kernel interface {
	// Check returns nil if leases of the interface and mode can be made, and the obstacle otherwise. It changes nothing
	// that lasts.
	Check(ctx context.Context, ifname string, mode Mode) error
	// Lease makes a lease. The caller owns the files of the Grant, sends them to the holder and closes them: the Kernel
	// keeps none, so that the kernel frees the sockets when the holder ends.
	Lease(ctx context.Context, r Request, h Holder, l Limits) (*Grant, error)
	// Adopt returns a lease that an earlier daemon made and that its holder still uses. The Grant has no files. The error
	// is ErrNoLease if there is no such lease or if another process made it.
	Adopt(ctx context.Context, id uint32, h Holder) (*Grant, error)
	// Release ends a lease: it removes everything of it in the kernel. An unknown one is no error.
	Release(id uint32) error
	// Listen directs connection requests for a qualifier to a lease. The error is ErrTaken if another lease of the
	// interface has the qualifier.
	Listen(id uint32, qualifier uint64) error
	// Unlisten ends Listen. A qualifier that the lease does not have is no error.
	Unlisten(id uint32, qualifier uint64)
	// Route looks up the path from a lease to an address.
	Route(id uint32, to netip.Addr) (Route, error)
	// Sweep removes what earlier daemons left of leases whose holders have ended. It returns the leases of living holders
	// that have not been adopted.
	Sweep() ([]Held, error)
	// Close detaches from the kernel's objects, which go on working. It removes what no lease needs.
	Close() error
}
