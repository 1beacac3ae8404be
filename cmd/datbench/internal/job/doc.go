// Package job measures the rows of a plan in rounds: over a pair of agents in network namespaces or on loopback, or against
// a server on another host.
//
// Ordering: rounds go through all rows in turn, so that what is compared is measured at one time. Ownership: a job ends what
// it starts. Threading: one goroutine runs a job.
package job
