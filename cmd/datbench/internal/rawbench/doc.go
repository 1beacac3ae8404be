// Package rawbench measures the speed of raw AF_XDP frames between two processes. This is the upper limit for every
// protocol over AF_XDP. A Server answers and counts; a Client sends. For comparison, each end runs on the engine of
// this repository or on github.com/asavie/xdp.
//
// Ordering: a client has one run at a time; a server keeps the count of the latest run. Every frame has a run number
// and a sequence number; only frames that arrive are counted.
//
// Ownership: Open takes queue 0 of an interface, in the network namespace of the calling thread; Close releases it. The
// engine of asavie/xdp cannot release it: after Close its queue stays busy until the process ends, see asavie_linux.go.
//
// Threading: one goroutine uses a Client. Serve spins on the calling goroutine, locked to its thread, until its context
// ends. Each end uses a whole core while frames arrive. A server that receives no frames for a second sleeps until one
// arrives. Every wait is limited: a silent peer, a stuck ring and an ended context are errors.
package rawbench
