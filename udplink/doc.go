// Package udplink is a link over a kernel UDP socket. It carries the same datagrams as package xdp and can talk to it.
// It runs on any operating system, without root and with any NIC.
//
// Ordering: packets leave in the order of Send and arrive in the order of the kernel's queue. Ownership: all frames lie
// in one slab of the link. A frame is free again when Send returns, since the kernel copies the data. Threading: as in
// link.Link; nothing is locked on the data path.
//
// The socket is bound to one address, never to the wildcard. Packets have the don't-fragment bit where the system can
// set it. A packet that exceeds the MTU of the interface is dropped, and PathMTU then returns the new limit. Errors
// that ICMP reports (no listener, no route) are counted as drops, because the protocol's timers detect failed peers.
//
// On Linux, packets to neighbours that the kernel has not resolved are bounded, because they wait in the send buffer that
// all packets share. The rest is dropped and counted. Two goroutines follow the kernel's routes and neighbours for that.
//
// On Linux, recvmmsg and sendmmsg move batches (batch_linux.go). On other systems a goroutine reads the socket
// (portable.go).
package udplink
