// Package rawbench measures what raw AF_XDP frames reach between two processes: the floor under
// everything that is built on them. A Server answers and counts; a Client sends. Either end runs
// on this repository's engine or on github.com/asavie/xdp, the measured baseline.
//
// Ordering: a client has one run at a time; a server keeps the count of the latest. Every frame
// carries a run and a sequence number, and a frame counts only where it arrives.
//
// Ownership: Open takes an interface's queue 0, in the network namespace of the calling thread,
// and Close gives it back. The asavie engine cannot: after Close its queue stays busy until the
// process ends, see asavie_linux.go.
//
// Threading: one goroutine uses a Client. Serve spins on the calling goroutine, locked to its
// thread, until its context ends: each end takes a whole core while there are frames, and a server
// without any for a second sleeps until one comes. Nothing waits for ever: an end that falls silent,
// a ring that no longer moves and a context that ends are errors.
package rawbench
