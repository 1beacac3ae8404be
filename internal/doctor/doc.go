// Package doctor checks whether DAT will work on this host, over which interface and to which peer. If it will not
// work, the package says what to do. It reads the state of the kernel and changes nothing, but three actions are
// visible:
//
//   - If a peer is given, it receives a few packets.
//   - If AF_XDP sockets exist and the kernel does not list their queues, each queue is bound for about 25 ms.
//   - [Target.Try] opens the adapter.
//
// Ordering: the checks run one after the other in the order of their table, under the context of the call. Ownership: a
// [Report] belongs to the caller. Threading: any goroutine may call [Examine] and [Explain]; they examine the network
// namespace of the process.
//
// Reading order: examine.go and check.go drive the examination, table_linux.go lists the checks, finding.go and text.go
// report them.
package doctor
