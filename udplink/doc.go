// Package udplink is a link over a kernel UDP socket. It carries the same datagrams as package xdp, so the two can be
// the ends of one path. It runs on any operating system, without root and with any NIC.
//
// Ordering: packets leave in the order of Send and arrive in the order of the kernel's queue. Ownership: all frames lie
// in one slab of the link. A frame is free again when Send returns, because the kernel copies the data. Threading: as
// in link.Link; nothing is locked on the data path.
//
// The socket is bound to one address, never to the wildcard. Packets have the don't-fragment bit where the system can
// set it. A packet that exceeds the MTU of the interface is dropped, and PathMTU then returns the new limit. A packet
// that the kernel does not accept is counted as a drop. On Linux, ICMP port unreachable goes to the protocol
// (link.Reporter). So does destination unreachable of other codes, which ends attempts to connect.
//
// On Linux, packets to unresolved neighbours wait in the send buffer, which all packets of the link share. The link
// limits these packets, together with those that belong to no connection: it drops and counts the rest. To know which
// neighbours are resolved, two goroutines follow the kernel's routes and neighbours. If most packets find no room for a
// second, the link renews its socket (renew_linux.go).
//
// On Linux, recvmmsg and sendmmsg move batches (batch_linux.go). Packets of one path and one size that are sent in a row
// cross the kernel as one message (UDP_SEGMENT, group_linux.go), and the kernel merges received packets in the same way
// (UDP_GRO, merged_linux.go). Caps.Offload says which of the two the kernel has. A packet that the holder announces with
// Keep is copied, so that it does not occupy the memory of a whole message. On other systems a goroutine reads the socket
// (portable.go).
package udplink
