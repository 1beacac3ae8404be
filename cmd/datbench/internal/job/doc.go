// Package job measures the rows of a plan in rounds. A job on this host runs between two agents, in network namespaces
// or on loopback. Other jobs run against a server on another host.
//
// Ordering: each round measures all rows once, so that rows to be compared are measured close in time. Ownership: a job
// ends every process that it starts. Threading: one goroutine runs a job.
//
// job.go runs a job between two agents, and against.go runs a job against a server; both use phases.go.
package job
