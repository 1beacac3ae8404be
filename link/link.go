package link

import (
	"errors"
	"net/netip"
	"time"
)

// Path names a destination that a link has resolved: addresses, headers, next hop. It is an index
// into a table of the link that made it and means nothing to another link.
type Path uint32

// PathReply sends a packet back to where it came from. It is legal only on a packet whose first
// frame came from Recv and whose Data still begins where Recv put it: the link turns that packet's
// own headers round, so that an answer to a stranger needs no state. Buf.Port of that frame names the
// UDP port that the answer goes to.
const PathReply Path = 0

// Flags qualify one Buf.
type Flags uint8

const (
	// More says that the packet goes on in the next Buf (multi-buffer).
	More Flags = 1 << iota
	// CE says that the network marked this packet "congestion experienced" (RFC 3168). Receive only.
	CE
)

// Buf is one piece of a packet: a frame of the link and the part of it that is UDP payload.
//
// Data may be shortened or re-sliced by its holder but never moved out of its frame, with one exception: a Buf from
// Alloc that is not the first of its packet may be sent with Data in a block of Caps.Memory, which goes from there.
// Frame is the link's own name of the memory; the holder hands it back as it got it.
type Buf struct {
	Data  []byte
	Path  Path
	Frame uint32
	Flags Flags
	// Port is the UDP port that an answer on PathReply goes to, at the address that the packet came from. 0 is the
	// port of Local, or, where Caps.SourcePort holds, the port that Link.Source names. It is read from a packet's first Buf; on any other Path it has no effect. Recv sets it to 0.
	Port uint16
}

// Caps says what a link can do. It does not change while the link is open.
type Caps struct {
	// MaxPayload is the largest UDP payload in bytes that one packet can carry over this link.
	MaxPayload int
	// FrameSize is the payload in bytes that one frame from Alloc holds. A received packet of up to as
	// many bytes comes in one frame.
	FrameSize int
	// Segments is the largest number of frames in one packet; 1 means no multi-buffer.
	Segments int
	// RxFrames is the number of received frames that a holder may keep back, for packets that
	// arrived early, before reception suffers.
	RxFrames int
	// TxFrames is the number of frames that can be allocated or in transmission at one time.
	TxFrames int
	// SourcePort says that packets leave from the UDP port of Local. A link without it chooses the source port
	// of each path.
	SourcePort bool
	// Memory is what the link can send from where it is, in blocks of Block bytes counted from its beginning. It
	// may be read until the packet has left. Nil where it cannot.
	Memory []byte
	Block  int
	// Mode names how packets move, as granted and not as asked for: "zero-copy", "copy",
	// "generic", "udp", "sim".
	Mode string
}

// Stats counts what a link did since it was opened. Every packet that was lost by the link or by
// the kernel below it, and that the link can learn of, is in one of the Dropped fields.
type Stats struct {
	RxPackets, RxBytes uint64
	TxPackets, TxBytes uint64
	// RxDropped counts packets that arrived and were lost: no free frame, ring full.
	RxDropped uint64
	// RxInvalid counts packets that arrived and were not well formed, or came from where no host can be: our own
	// address, a group, the loopback or no address.
	RxInvalid uint64
	// TxDropped counts packets that were accepted by Send and never left. Those that were lost after the device
	// had taken them are in TxPackets too.
	TxDropped uint64
	// TxKicks counts system calls that drove transmission; Wakeups counts returns from Wait that
	// had slept.
	TxKicks, Wakeups uint64
}

// Errors that links return. They are matched with errors.Is; the text around them names the object.
var (
	// ErrUnreachable: there is no route to the address, or it is not of a family the link carries.
	ErrUnreachable = errors.New("no route to host")
	// ErrTooManyPaths: the path table is full; release paths first.
	ErrTooManyPaths = errors.New("path table is full")
	// ErrBusy: the queue, the address or the port belongs to somebody else.
	ErrBusy = errors.New("busy")
	// ErrUnsupported: this host, kernel or driver lacks what was asked for.
	ErrUnsupported = errors.New("not supported here")
)

// Link moves batches of packets over one queue. The protocol sees UDP payload only: a link owns
// Ethernet, VLAN, IP and UDP headers, neighbours and checksums.
//
// Threading. Recv, Alloc, Send, Free and Source belong to one owner at a time. Wait, Wake, Caps,
// Stats, Local, Resolve, Release and PathMTU may be called by any goroutine at any time. Close is
// the owner's last call; it releases every Wait.
//
// None of the owner's calls blocks or allocates.
type Link interface {
	// Recv fills bufs with packets that have arrived and returns how many Bufs it filled. The
	// frames belong to the caller until Free or Send. A packet never spans two calls: at least
	// Caps().Segments Bufs must be offered.
	Recv(bufs []Buf) int

	// Alloc fills bufs with empty frames, len(Data) being Caps().FrameSize, and returns how many
	// it had. Fewer than asked for is back-pressure: the transmit ring is full.
	Alloc(bufs []Buf) int

	// Send transmits the packets in bufs, in order, and takes every frame. Data of each Buf is
	// what is sent, Path of a packet's first Buf says where to. A packet that the kernel does not
	// take is dropped and counted, as a network would.
	Send(bufs []Buf)

	// Free gives frames back unsent. They come from Recv or Alloc.
	Free(bufs []Buf)

	// Source is the address and UDP port that the packet beginning with this Buf, fresh from Recv, came from.
	Source(b *Buf) netip.AddrPort

	// Wait sleeps until a packet may have arrived, Wake was called, the link was closed, or d has
	// passed (d < 0: no limit). It may return early for no reason. A Wake that no Wait was
	// there to see makes the next Wait return at once.
	Wait(d time.Duration)

	// Wake releases Wait.
	Wake()

	// Local is the address and port this link receives on.
	Local() netip.AddrPort

	// Resolve makes a path to an address. Packets on one path keep one source port, chosen from
	// entropy where the link can choose (RSS and ECMP hash on it). Resolve does not wait for a
	// neighbour to answer: packets sent before are dropped and counted.
	Resolve(to netip.AddrPort, entropy uint16) (Path, error)

	// Release ends a path. Packets that still name it are dropped and counted.
	Release(Path)

	// PathMTU is the largest UDP payload in bytes that the path is known to carry now.
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
	s.TxKicks += o.TxKicks
	s.Wakeups += o.Wakeups
}
