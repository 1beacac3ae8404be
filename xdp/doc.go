// Package xdp is a link over AF_XDP: it steers one UDP port of an interface past the kernel's
// network stack into memory shared with the program, and leaves everything else to the kernel.
//
// Open makes a Device of an interface: an eBPF program on it, and a Socket on each of its receive
// queues. A Socket is a link.Link; the protocol above sees UDP payload only.
//
// Ordering. A socket keeps the order of packets in each direction, and of the frames of a packet.
// It loses packets as a network does when a ring is full, a neighbour is unknown or the interface
// is down, and counts them.
//
// Ownership. A frame is in one place: the pool, the kernel to be received into, the owner (from
// Recv or Alloc), or the kernel to be transmitted. Recv and Alloc hand frames to the owner, Send and
// Free take them back. At most Caps().TxFrames frames are allocated or in transmission, so Send always
// finds room for a frame from Alloc; a received frame that is sent on may find none, and is dropped.
// Frames that the kernel refuses while the interface is down return to the pool; those that it had
// taken come back when it is up again.
//
// Threading. Each socket has one owner at a time, who alone calls Recv, Alloc, Send, Free, Source
// and the raw verbs; nothing there locks, allocates, blocks or reads a clock. Everything else may
// be called by any goroutine. Close is the owner's last call; it releases and awaits every Wait
// before the memory goes.
//
// Memory. Each socket has a UMEM of its own, outside the Go heap: queues share nothing.
//
// Memory order. The words of a ring that the kernel and we share are loaded and stored with
// sync/atomic only: a slot is written before the store that publishes it, and read after the load
// that found it. Each word has one writer.
package xdp
