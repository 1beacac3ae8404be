// Package claim lets one process of a host at a time listen on a connection qualifier of an address.
//
// A claim is a record lock of the kernel on the file of the network namespace, /proc/thread-self/ns/net. Every process of
// the namespace can open that file, without a privilege and without a writable directory. The offset of the record is a
// hash of address and qualifier, so one descriptor has any number of claims. When a process ends, even by SIGKILL, the
// kernel closes the descriptor and the claims end. Decision 0023 has the alternatives.
//
// Ordering. When Claim has returned nil, a Claim of another process fails until Release or Close is called.
//
// Ownership. The addresses of one namespace share one descriptor, which the last Close closes. A forked child inherits
// the descriptor, and the claims would last as long as the child. So the C provider closes it in the child (internal/exclusive).
//
// Threading. Open uses the network namespace of the calling thread. Any goroutine, on a thread of any namespace, may call
// the methods.
package claim
