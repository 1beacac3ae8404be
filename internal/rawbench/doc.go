// Package rawbench measures the speed of raw AF_XDP frames between two processes. This is the upper
// limit for every protocol over AF_XDP. A Server answers and counts; a Client sends. Each end runs
// on this repository's engine or on github.com/asavie/xdp, for comparison.
//
// Ordering: a client has one run at a time; a server keeps the count of the latest run. Every frame
// carries a run and a sequence number, and counts only where it arrives.
//
// Ownership: Open takes queue 0 of an interface, in the network namespace of the calling thread;
// Close releases it. The asavie engine cannot release it: after Close its queue stays busy until
// the process ends, see asavie_linux.go.
//
// Threading: one goroutine uses a Client. Serve spins on the calling goroutine, locked to its
// thread, until its context ends. Each end uses a whole core while frames arrive; a server without
// frames for a second sleeps until one arrives. Every wait is bounded: a silent peer, a stuck ring
// and an ended context are errors.
package rawbench
