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
// Reading order: steer.c is the program, steer.go its life cycle, load_linux.go and attach_linux.go the steps of
// [Attach].
package bpf
