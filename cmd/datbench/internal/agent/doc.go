// Package agent is the process at each end of a job's link, and the hold of the job on a pair of them: a child that is told
// by lines of JSON to open ends and to measure rows, and that the kernel kills when the job dies.
//
// Ordering: a phase is opened at both ends, measured row by row, and closed. Ownership: a Pair owns its processes.
// Threading: one goroutine uses a Pair.
package agent
