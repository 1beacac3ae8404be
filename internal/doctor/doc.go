// Package doctor says whether DAT will work on this host, over which interface and to which peer, and
// what to do where it will not. It changes nothing: it reads what the kernel tells, and to look at a
// peer it sends a few small packets.
//
// Ordering: the checks run one after the other in the order of [Names], each under the context of the
// call. Ownership: a [Report] is the caller's. Threading: [Examine] and [Explain] look at the network
// namespace of the process and may be called by any goroutine.
package doctor
