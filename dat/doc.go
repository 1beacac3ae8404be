// Package dat is DAT, the Direct Access Transport (uDAPL), in Go: register memory, connect
// endpoints, post sends, receives, RDMA reads and writes, and reap completions from event
// dispatchers, over AF_XDP or UDP on ordinary Ethernet.
//
// Names are those of the specification without prefix: dat_ep_post_send is (*EP).PostSend. Handles
// are pointers; a freed one is answered with ErrInvalidHandle. Errors are DAT return types for
// errors.Is.
//
// Ordering. Sends of a connection arrive in posting order, RDMA writes land in posting order;
// completions come in posting order, sends and receives apart. A completion means that the data is
// at the peer.
//
// Ownership. Memory named by a post belongs to the provider until its completion was taken or the
// endpoint was freed. An LMR keeps its memory alive; after LMR.Free nothing touches it.
//
// Threading. Every method may be called by any goroutine. There is no thread of the provider on the
// data path: posts transmit, and Dequeue and Wait receive, in the calling goroutine. A background
// goroutine for each queue serves peers and timers while nobody calls. For the lowest latency, one
// goroutine calls Dequeue in a loop.
package dat
