// Package worker computes the handshakes of a secure adapter on one goroutine, beside the owners of its engines.
//
// Ordering. Jobs of this host and of authenticated requesters take turns with those of strangers. Strangers are served
// round robin by site (IPv4 /16, IPv6 /48), within a site by network (/24, /64), within a network by address, and within an
// address in the order of their jobs.
//
// Ownership. The worker keeps a job until the job is done or dropped.
//
// Threading. Any goroutine may call Submit. Close is called once, and waits for the goroutine of the worker. Submit
// never waits for a computation.
package worker
