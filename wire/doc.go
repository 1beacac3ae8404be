// Package wire implements the protocol: reliable connections with sends, RDMA writes, RDMA reads and atomics over any
// link.Link. docs/WIRE.md specifies it, byte by byte.
//
// The package is sans-IO: an Engine does all its work within Poll(now), on its owner's goroutine, and reads no clock.
// So the same code runs on AF_XDP, on a UDP socket and in virtual time.
//
// Ordering. Sends of a connection arrive in posting order, writes are placed in posting order, and requests complete in
// posting order. A completion means that the peer has acknowledged the operation, or for a read or an atomic that the
// response has arrived. On the queues of one engine, the completions of a connection precede the event that ends it.
//
// Ownership. Each side copies data once: from registered memory to a transmit frame, and from a receive frame to
// registered memory. A lost packet is built again from registered memory, so the engine owns the memory of an operation
// until its completion. A received frame returns to the link within the Poll that received it, unless it is held as
// early.
//
// Threading. Any goroutine may use a Host with its regions and services, and post on a Conn. An Engine has one owner at
// a time, from TryOwn to Disown. After a post the owner calls Kick, and any other goroutine calls Ring. A Queue has one
// consumer at a time.
package wire
