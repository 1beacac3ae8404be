// Package doctor says whether DAT will work on this host, over which interface and to which peer, and
// what to do where it will not. It reads what the kernel tells, and leaves everything as it was. Three
// things are noticed outside: to look at a peer it sends a few packets; where the kernel does not list
// AF_XDP sockets it binds one to every queue, each of which is taken for some 25 ms, if there is another
// such socket at all; and [Target.Try] opens the adapter.
//
// Ordering: the checks run one after the other in the order of [Names], each under the context of the
// call. Ownership: a [Report] is the caller's. Threading: [Examine] and [Explain] look at the network
// namespace of the process and may be called by any goroutine.
package doctor
