// Package agent runs the two ends of a job in processes of their own. The job starts a pair of agents: copies of this
// program that open ends and measure rows on command, one line of JSON each. The kernel kills an agent when the job
// dies, so nothing stays behind.
//
// Ordering: a phase is opened at both ends, measured row by row, and closed. Ownership: a Pair owns its processes.
// Threading: one goroutine uses a Pair.
//
// pair.go and remote.go are the job's side, agent.go is the agent's.
package agent
