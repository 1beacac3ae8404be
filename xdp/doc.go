// Package xdp is a link over AF_XDP. An XDP program on an interface redirects the packets of one UDP port into memory
// that this process shares with the kernel. All other packets go to the kernel's network stack.
//
// Open makes a Device: the XDP program, and one Socket per receive queue. A Socket is a link.Link; the protocol above
// it sees UDP payload only.
//
// Ordering. A socket keeps the order of packets in each direction, and the order of the frames of a packet. It drops
// and counts packets when a ring is full, a neighbour is unresolved or the interface is down.
//
// Ownership. The owner of a socket is the goroutine that uses its data path. Each frame is in one of four places:
//
//   - in the pool
//   - in the kernel, for reception
//   - with the owner, from Recv or Alloc until Send or Free
//   - in the kernel, for transmission
//
// At most Caps().TxFrames frames are allocated or in transmission, so Send always has room for a frame from Alloc. A
// received frame may be sent too; if there is no room for it, the socket drops it. While the interface is down, frames
// that the kernel refuses return to the pool. Frames that are already in the kernel return to the pool when the
// interface is up again.
//
// Threading. Each socket has one owner at a time. Only the owner calls Recv, Alloc, Send, Free, Keep, Source, Target
// and the raw calls (RecvFrames, SendFrames, InFlight). These calls do not lock, allocate, block or read a clock. Any
// goroutine may call all other methods. Close is the owner's last call: it ends every Wait before it unmaps the memory.
//
// Memory. Each socket has its own UMEM outside the Go heap. Queues share no frames.
//
// Memory order. The kernel and this process share the index words of each ring, and access them atomically. Each word
// has one writer. The writer of a slot first fills the slot, and then stores the index word. The reader first loads the
// index word, and then reads the slot.
//
// Reading order: options.go and params.go; umem.go, pool.go and ring.go for the data structures; device_linux.go and
// socket_linux.go for the set-up; recv_linux.go, send_linux.go and wait_linux.go for the data path; watch_linux.go for
// the supervision of an open device.
package xdp
