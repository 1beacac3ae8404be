// Package job measures the rows of a plan in rounds. A job runs either on a pair of agents, which are
// in network namespaces or on loopback, or against a server on another host.
//
// Ordering: each round measures all rows once, so that rows to be compared are measured close in time. Ownership: a job
// ends every process that it starts. Threading: one goroutine runs a job.
//
// job.go has the job on a pair of agents, against.go the job against a server; both use phases.go.
package job
