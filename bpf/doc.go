// Package bpf redirects UDP ports of a network interface to AF_XDP sockets. It works with packets and queue numbers;
// of a socket it only needs the file descriptor. It is made for package xdp; releases may change its API.
//
// The XDP program (steer.c) redirects unfragmented UDP packets for the port to the socket of the queue on which they
// arrived. All other frames go to the kernel: other traffic, fragments, packets with IP options or inconsistent
// headers, and packets for our port on a queue without a socket. The program drops nothing.
//
// Ordering: a queue's packets are redirected from the return of [Steer.Register] until [Steer.Unregister],
// [Steer.Close] or the close of the socket. Ownership: a Steer owns its program, maps and attachment, but no socket.
// The attachment is a bpf_link, so the kernel detaches the program when the process ends for any reason. Threading:
// [Attach] looks up interfaces in the network namespace of the calling thread. Any goroutine may call the methods of
// [Steer], in any namespace.
//
// # Leases
//
// Leases share an interface through three other programs. A lease has a veth, whose two ends are the host end and the
// client's end, and an AF_XDP socket that is bound to the client's end:
//
//	NIC: share.c ─ DEVMAP ─> veth ─> client's end: deliver.c ─ XSKMAP ─> socket
//	NIC <─ bpf_redirect_neigh ─ host end: send.c <─ veth <───────────── socket
//	       or, for an address of the interface, to the host end of another lease
//
// share.c finds the lease by the engine in the connection ID, or by the connection qualifier of a Connect. A Reset has
// the connection ID of its sender: at a source port it goes to the owner of the port, at the service port to every
// lease, at most 1000 a second on each processor. A packet for no lease goes to the lease with the number [AnyEngine],
// which answers it. send.c drops what is not plain UDP over IP with a source address of the interface and a source port
// of the lease, and counts it for each lease ([Sent]).
//
// Maps and links are pinned ([Share], [End]). They live until [Share.Detach], and those of a lease until its pins and its
// veth are removed. The socket is in no pin: the kernel forgets it with its last descriptor, and [Occupy] finds that out.
//
// Reading order: steer.c is the program, steer.go its life cycle, load_linux.go and attach_linux.go the steps of
// [Attach].
package bpf
