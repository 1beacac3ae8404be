// Package udplink is a link over a kernel UDP socket: the same datagrams as over AF_XDP, on any
// operating system, without root and without a NIC that knows XDP. It talks to an xdp link.
//
// Ordering: packets leave in the order of Send and arrive in the order of the kernel's queue.
// Ownership: frames lie in one slab of the link; a frame handed to Send is free again when Send
// returns, since the kernel copies. Threading: as link.Link says; nothing is locked on the data
// path.
//
// The socket is bound to one address, never to the wildcard. Packets carry the don't-fragment bit
// where the system can set it, so what does not fit the interface is dropped and PathMTU learns of it.
// Errors that ICMP reports (nobody listens, no route) are counted as drops: a datagram service has
// no failed peers, the protocol's timers find them.
//
// On Linux batches go through recvmmsg and sendmmsg; elsewhere a goroutine reads the socket.
package udplink
