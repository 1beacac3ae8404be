package link

import (
	"errors"
	"net/netip"
	"time"
)

// Path identifies a destination that a link has resolved to addresses, headers and next hop. It is an index into a
// table of that link, and is meaningless to another link.
type Path uint32

// PathReply sends a received packet's frames back to the sender of the packet. The first frame must come from Recv, and
// its Data must still begin where Recv put it. The link reverses the packet's own headers, so an answer to an unknown
// peer needs no state. Buf.Port of that frame is the UDP port of the answer.
const PathReply Path = 0

// Flags are the properties of one Buf.
type Flags uint8

const (
	// More means that the packet continues in the next Buf (multi-buffer).
	More Flags = 1 << iota
	// CE means that the network marked this packet "congestion experienced" (RFC 3168). Receive only.
	CE
)

// Buf is one part of a packet: a frame of the link, and the UDP payload in it.
//
// The holder may shorten or re-slice Data, but Data must stay inside its frame. There is one exception: in a Buf from
// Alloc that is not the first of its packet, Data may lie in a block of Caps.Memory, and the link sends it from there.
// Frame is the link's own number for the memory; the holder returns it unchanged.
type Buf struct {
	Data  []byte
	Path  Path
	Frame uint32
	Flags Flags
	// Port is the destination UDP port of an answer on PathReply; the address is that of the packet's sender. 0 selects
	// the port of Local or, if Caps.SourcePort is set, the port that Link.Source returns. Only the first Buf of a
	// packet is read, and only on PathReply. Recv sets Port to 0.
	Port uint16
}

// Caps are the capabilities of a link. They do not change while the link is open.
type Caps struct {
	// MaxPayload is the largest UDP payload of one packet in bytes.
	MaxPayload int
	// FrameSize is the payload in bytes that one frame from Alloc holds. A received packet of at most this size arrives
	// in one frame.
	FrameSize int
	// Segments is the largest number of frames in one packet; 1 means no multi-buffer.
	Segments int
	// RxFrames is the number of received frames that the holder may keep, for early packets, without loss of reception.
	RxFrames int
	// TxFrames is the largest number of frames that are allocated or in transmission at one time.
	TxFrames int
	// SourcePort means that packets leave from the UDP port of Local. Without it the link chooses a source port per
	// path.
	SourcePort bool
	// Memory is memory that the link can send from in place, in blocks of Block bytes from its beginning. The link
	// reads it until the packet has left. nil if the link cannot do this.
	Memory []byte
	Block  int
	// Mode names how packets move, as granted: "zero-copy", "copy", "generic", "udp" or "sim".
	Mode string
}

// Stats are the counters of a link since it was opened. Every lost packet that the link can learn of, lost by the link
// or by the kernel below it, is counted in a Dropped field.
type Stats struct {
	RxPackets, RxBytes uint64
	TxPackets, TxBytes uint64
	// RxDropped counts packets that arrived and were lost: no free frame, or ring full.
	RxDropped uint64
	// RxInvalid counts packets that arrived malformed, or with a source address that no other host can have: our own,
	// multicast, loopback or unspecified.
	RxInvalid uint64
	// TxDropped counts packets that Send accepted and that never left. TxPackets also counts those that were lost after
	// the device had taken them.
	TxDropped uint64
	// TxFull counts those of TxDropped that found the kernel's send buffer full.
	TxFull uint64
	// TxKicks counts system calls that drove transmission. Wakeups counts returns from a Wait that slept.
	TxKicks, Wakeups uint64
}

// Errors of links, for errors.Is. The text around them names the object.
var (
	// ErrUnreachable: there is no route to the address, or the link does not support its family.
	ErrUnreachable = errors.New("no route to host")
	// ErrTooManyPaths: the path table is full; release paths first.
	ErrTooManyPaths = errors.New("path table is full")
	// ErrBusy: another program has the queue, the address or the port.
	ErrBusy = errors.New("busy")
	// ErrUnsupported: the host, kernel or driver lacks the requested feature.
	ErrUnsupported = errors.New("not supported here")
)

// Link moves batches of packets over one queue. The protocol sees UDP payload only: a link handles Ethernet, VLAN, IP
// and UDP headers, neighbours and checksums.
//
// Threading. Recv, Alloc, Send, Free and Source belong to one owner at a time. Any goroutine may call Wait, Wake, Caps,
// Stats, Local, Resolve, Release and PathMTU at any time. Close is the owner's last call; it ends every Wait.
//
// None of the owner's calls blocks or allocates.
type Link interface {
	// Recv fills bufs with received packets and returns the number of Bufs it filled. The caller owns the frames until
	// Free or Send. A packet is never split over two calls, so bufs must have at least Caps().Segments elements.
	Recv(bufs []Buf) int

	// Alloc fills bufs with empty frames of Caps().FrameSize bytes and returns how many it filled. Fewer than requested
	// is back-pressure: the transmit ring is full.
	Alloc(bufs []Buf) int

	// Send transmits the packets in bufs, in order, and takes every frame. Data of each Buf is the payload. Path of a
	// packet's first Buf is the destination. A packet that the kernel does not accept is dropped and counted.
	Send(bufs []Buf)

	// Free returns frames from Recv or Alloc without sending them.
	Free(bufs []Buf)

	// Source returns the source address and UDP port of the packet that begins with this Buf. The Buf must be unchanged
	// since Recv.
	Source(b *Buf) netip.AddrPort

	// Wait sleeps until a packet may have arrived, Wake is called, the link is closed, or d has passed (d < 0: no
	// limit). It may also return early. A Wake without a Wait in progress makes the next Wait return at once.
	Wait(d time.Duration)

	// Wake ends a Wait.
	Wake()

	// Local returns the address and port that this link receives on.
	Local() netip.AddrPort

	// Resolve creates a path to an address. All packets of a path have the same source port. If the link can choose the
	// port, it derives it from entropy, because RSS and ECMP hash on it. Resolve does not wait for the neighbour.
	// Packets sent before the neighbour is known are dropped and counted.
	Resolve(to netip.AddrPort, entropy uint16) (Path, error)

	// Release ends a path. Packets that still use it are dropped and counted.
	Release(Path)

	// PathMTU returns the largest UDP payload in bytes that the path is known to carry.
	PathMTU(Path) int

	Caps() Caps
	Stats() Stats
	Close() error
}

// Add adds the counters of another link.
func (s *Stats) Add(o Stats) {
	s.RxPackets += o.RxPackets
	s.RxBytes += o.RxBytes
	s.TxPackets += o.TxPackets
	s.TxBytes += o.TxBytes
	s.RxDropped += o.RxDropped
	s.RxInvalid += o.RxInvalid
	s.TxDropped += o.TxDropped
	s.TxFull += o.TxFull
	s.TxKicks += o.TxKicks
	s.Wakeups += o.Wakeups
}
