// Package wire implements the protocol: reliable connections with sends, RDMA writes, RDMA reads and atomics over any
// link.Link. docs/WIRE.md specifies it, byte by byte.
//
// The package is sans-IO: an Engine does all its work within calls of its owner, mostly Poll(now). It reads no clock,
// except that of Host.SetClock, which measures replies to strangers. In secure mode a Runner computes the handshakes. So
// the same code runs on AF_XDP, on a UDP socket and in virtual time.
//
// Ordering. The sends of a connection arrive in posting order, its writes are placed in posting order, and its requests
// complete in posting order. The completion of a read or an atomic means that the response has arrived. The completion
// of any other request means that the peer has acknowledged it. On the queues of one engine, the completions of a
// connection precede the event that ends the connection.
//
// Ownership. Each side copies data once: the sender from registered memory to a transmit frame, the receiver from a
// receive frame to registered memory. A lost packet is built again from registered memory, so the engine owns the
// memory of an operation until the operation completes. A received frame returns to the link within the Poll that
// received it. The only exception is a frame of an early packet, which arrived before its turn and is held.
//
// Threading. Any goroutine may use a Host with its regions and services, and may post on a Conn. An Engine has one
// owner at a time, from TryOwn to Disown. After a post, the owner calls Kick, and any other goroutine calls Ring. A
// Queue has one consumer at a time.
package wire
