package link

import (
	"errors"
	"net/netip"
	"time"
)

// Path identifies a destination that a link has resolved to addresses, headers and next hop. It is an index into a
// table of that link and is not valid on another link.
type Path uint32

// PathReply sends the frames of a received packet back to the sender of the packet. The first frame must come from
// Recv, and its Data must still begin at the same byte. The link reverses the packet's own headers, so an answer to an
// unknown peer needs no state. It leaves from the address and port to which the packet was sent. Buf.Port of the first
// frame is the destination UDP port of the answer.
const PathReply Path = 0

// Flags are the properties of one Buf.
type Flags uint8

const (
	// More means that the packet continues in the next Buf (multi-buffer).
	More Flags = 1 << iota
	// CE means that the network marked this packet "congestion experienced" (RFC 3168). Receive only.
	CE
	// Unconnected marks a packet that belongs to no connection. Packets on PathReply never do. All these packets
	// together take at most a quarter of what the link can have in transmission, because their destinations may hold
	// them there; further ones are dropped and counted. Set in the first Buf of a packet. Send only.
	Unconnected
	// Single marks a packet that leaves by itself, and not in a group of packets (Caps.Group). Bridges of Linux pass a
	// group whose packets are larger than the MTU behind them, so a packet in a group does not show which size passes.
	// Set in the first Buf of a packet. Send only.
	Single
)

// Buf is one part of a packet: a frame of the link, and the UDP payload in it.
//
// The holder may shorten or re-slice Data, but Data must stay inside its frame. There is one exception: if a Buf from
// Alloc is not the first one of its packet, its Data may lie in a block of Caps.Memory, and the link sends it from
// there. Frame is the link's own number for the memory; the holder returns it unchanged.
type Buf struct {
	Data  []byte
	Path  Path
	Frame uint32
	Flags Flags
	// Port is the destination UDP port of an answer on PathReply. The destination address is that of the received
	// packet's sender. If Port is 0, the link uses the port of Local or, if Caps.SourcePort is set, the port that
	// Link.Source returns. The link reads Port only in the first Buf of a packet on PathReply. Recv sets it to 0.
	Port uint16
}

// Caps are the capabilities of a link. They do not change while the link is open.
type Caps struct {
	// MaxPayload is the largest UDP payload of one packet in bytes.
	MaxPayload int
	// FrameSize is the payload size of a frame from Alloc in bytes. A received packet up to this size is one frame.
	FrameSize int
	// Segments is the largest number of frames in one packet; 1 means no multi-buffer.
	Segments int
	// RxFrames is the number of received frames that the holder may keep, for early packets, while the link still
	// receives without loss.
	RxFrames int
	// RxWindow is the number of full packets that the receive buffer of the kernel holds until Recv. Peers are told not
	// to have more in flight on one connection, but at least 32. 0 means that the buffer is no bound.
	RxWindow int
	// TxFrames is the largest number of frames that are allocated or in transmission at one time.
	TxFrames int
	// SourcePort: the link receives at the UDP port from which a packet leaves, whether that is the port of Local or one
	// that the link has chosen for a path. So the peer may answer to the source port of a packet, and both directions of
	// a connection use the same two ports. Without SourcePort, peers answer to the port of Local.
	SourcePort bool
	// Memory is memory from which the link can send without a copy. It consists of blocks of Block bytes. The link
	// reads a block until the packet has left. Memory is nil if the link cannot do this.
	Memory []byte
	Block  int
	// Group is the size in bytes up to which consecutive packets of one path and one size cost little more than one
	// packet. 0 means that each packet costs the same.
	Group int
	// NoGroups means that a group of a peer's kernel arrives here as one packet, which the link cannot take apart. Peers
	// are told to send single packets.
	NoGroups bool
	// HostDelay is the time that a packet may wait in queues of the kernel at both hosts, because the processors are
	// busy. Congestion control takes only a longer delay for a queue in the network.
	HostDelay time.Duration
	// Offload names the offloads of the kernel that the link uses, separated by a space: UDP_SEGMENT and UDP_GRO. It is
	// empty if there are none.
	Offload string
	// Mode names how packets move: "zero-copy", "copy", "generic", "udp" or "sim".
	Mode string
}

// Stats are the counters of a link since it was opened. The Dropped fields count the packets that the link or the
// kernel below it has lost, as far as the link can tell.
type Stats struct {
	RxPackets, RxBytes uint64
	TxPackets, TxBytes uint64
	// RxDropped counts packets that arrived and were lost: no free frame, or ring full.
	RxDropped uint64
	// RxInvalid counts packets that arrived malformed. It also counts packets with a source address that no other host
	// can have: our own, multicast, loopback or unspecified.
	RxInvalid uint64
	// TxDropped counts packets that Send accepted but that never left. A packet that the device lost after taking it
	// counts as sent in TxPackets.
	TxDropped uint64
	// TxFull counts packets of TxDropped for which the kernel's send buffer was full.
	TxFull uint64
	// RxGroups counts groups of packets that the kernel merged into one message (UDP_GRO), and TxGroups counts messages
	// that the kernel cut into packets (UDP_SEGMENT).
	RxGroups, TxGroups uint64
	// TxKicks counts system calls that drove transmission. Wakeups counts returns from a Wait that slept.
	TxKicks, Wakeups uint64
}

// Errors of links, for errors.Is. The text of a returned error also names the object.
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
// Threading. Recv, Alloc, Send, Free, Keep, Source and Target belong to one owner at a time. Any goroutine may call
// Wait, Wake, Caps, Stats, Local, Resolve, ResolveFrom, Release and PathMTU at any time. Close is the owner's last call;
// it ends every Wait.
//
// None of the owner's calls blocks or allocates.
type Link interface {
	// Recv fills bufs with received packets and returns the number of filled Bufs. The caller owns the frames until
	// Free or Send. A packet is never split between two calls, so bufs must have at least Caps().Segments elements.
	Recv(bufs []Buf) int

	// Alloc fills bufs with empty frames of Caps().FrameSize bytes and returns the number of filled Bufs. It fills
	// fewer than requested if the transmit ring is full (back-pressure).
	Alloc(bufs []Buf) int

	// Send transmits the packets in bufs in order and takes every frame. Data of each Buf is the payload. Path of the
	// first Buf of a packet is the destination. A packet that the kernel does not accept is dropped and counted.
	Send(bufs []Buf)

	// Free returns frames from Recv or Alloc without sending them.
	Free(bufs []Buf)

	// Keep announces that the holder keeps a received packet after the next Recv. bufs are all frames of the packet. The
	// link may move the packet into other frames; then it changes Data and Frame of bufs. Without Keep, a packet may
	// occupy memory that many packets share, and the link may be unable to receive.
	Keep(bufs []Buf)

	// Source returns the source address and UDP port of the packet that begins with b. b must be unchanged since Recv.
	Source(b *Buf) netip.AddrPort

	// Target returns the address of this host to which the packet that begins with b was sent. b must be unchanged since
	// Recv.
	Target(b *Buf) netip.Addr

	// Wait sleeps until a packet may have arrived, Wake is called, the link is closed, or d has passed (d < 0: no
	// limit). It may return earlier. If Wake is called while no Wait is in progress, the next Wait returns at once.
	Wait(d time.Duration)

	// Wake ends a Wait.
	Wake()

	// Local returns the address and port that this link receives on.
	Local() netip.AddrPort

	// Resolve creates a path to an address. All packets of a path have the same source port. If the link has several
	// ports, entropy chooses one, because RSS and ECMP hash on the port. Resolve does not wait for the neighbour
	// (ARP, NDP). Packets sent before the neighbour is known are dropped and counted. Resolve may wait a short time for
	// the operating system's route.
	Resolve(to netip.AddrPort, entropy uint16) (Path, error)

	// ResolveFrom is Resolve for answers to a peer: packets of the path leave from the port of Local, at which the peer
	// has called, and from the given address of this host, if the link receives on that address. A peer ignores packets
	// from another address than the one that it sent to, and firewalls and NAT pass only answers from the port that was
	// called. If the link receives on that address, ResolveFrom does not wait, because an attacker can cause calls by
	// connecting: it uses the route that is known.
	ResolveFrom(from netip.Addr, to netip.AddrPort, entropy uint16) (Path, error)

	// Release ends a path. Packets that are sent on it afterwards are dropped and counted.
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
	s.RxGroups += o.RxGroups
	s.TxGroups += o.TxGroups
	s.TxKicks += o.TxKicks
	s.Wakeups += o.Wakeups
}
