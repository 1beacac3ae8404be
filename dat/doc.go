// Package dat implements DAT, the Direct Access Transport (uDAPL), in Go, over AF_XDP or UDP on ordinary Ethernet. A
// program registers memory and connects endpoints. It posts operations (sends, receives, RDMA reads and RDMA writes),
// and takes their completions from event dispatchers.
//
// Names are those of the specification without the prefix: dat_ep_post_send is (*EP).PostSend. Handles are pointers.
// A call on a freed handle returns ErrInvalidHandle. Errors are DAT return types; compare them with errors.Is.
//
// Ordering. The sends of a connection arrive in posting order. The RDMA writes of a connection land in posting order.
// The completions of requests (sends, RDMA, binds) come in posting order, and so do the completions of receives. When a
// send or an RDMA write completes successfully, its data is in the peer's memory.
//
// Ownership. Memory named by a post belongs to the provider until the consumer takes the completion or frees the
// endpoint. An LMR keeps its memory alive. After LMR.Free the provider does not access that memory.
//
// Threading. Any goroutine may call any method. The provider has no thread on the data path: a post transmits, and
// Dequeue and Wait receive, in the calling goroutine. One background goroutine for each queue serves peers and timers
// while no call is running. For the lowest latency, one goroutine calls Dequeue in a loop.
package dat
