// Package bpf steers one UDP port of a network interface into AF_XDP sockets. It knows packets and
// queue numbers; of a socket it knows the file descriptor only.
//
// The program (steer.c) redirects an unfragmented UDP packet for the port to the socket of the queue
// it arrived on. Every other frame goes to the kernel as if the program were not there: other
// traffic, fragments, IP options, headers that contradict each other, and our own port while the
// queue has no socket. It drops nothing.
//
// Ordering: packets are steered from the moment that [Steer.Register] returns until
// [Steer.Unregister], [Steer.Close] or the end of the socket. Ownership: a Steer owns its program,
// maps and attachment, never a socket; the attachment is a bpf_link, so that the kernel detaches the
// program when the process ends in any way. Threading: [Attach] looks interfaces up in the network
// namespace of the calling thread; the methods of [Steer] may be called by any goroutine, whichever
// namespace its thread is in.
package bpf
