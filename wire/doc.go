// Package wire is the protocol: reliable connections with sends, RDMA writes and RDMA reads over any
// link.Link. docs/WIRE.md is its reference, byte by byte. Programs use package dat: what is exported here is for it,
// and no release promises to keep it.
//
// It is sans-IO: an Engine does everything within Poll(now), on the goroutine of whoever owns it, and
// reads no clock. The same code runs on AF_XDP, on a UDP socket and in virtual time.
//
// Ordering. Sends of a connection arrive in posting order, writes are placed in posting order, and
// requests complete in posting order; a completion means that the peer has acknowledged the
// operation, for a read that its data is here. On the queues of one engine, what a connection
// completed comes before the event that ends it.
//
// Ownership. Data is copied once on each side: registered memory to transmit frame, receive frame to
// registered memory. A packet is made again from the registered memory when it is lost, so memory of
// an operation belongs to the engine until its completion. Received frames go back to the link
// within the Poll that saw them, unless they came early.
//
// Threading. A Host and its regions and services may be used by any goroutine. An Engine has one
// owner at a time, taken with TryOwn and given up with Disown. Posting on a Conn may be done by
// any goroutine; the engine is then kicked by its owner or rung by others. A Queue has one consumer at
// a time.
package wire
