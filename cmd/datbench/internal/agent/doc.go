// Package agent runs the two ends of a benchmark in two processes. The main job starts a pair of agents, which are
// copies of this program. They open ends and measure rows on command; a command is one line of JSON. The kernel kills
// the agents when the main job dies, so no process is left behind.
//
// Ordering: a phase is opened at both ends, measured row by row, and closed. Ownership: a Pair owns its processes.
// Threading: one goroutine uses a Pair.
//
// pair.go and remote.go are the job's side, agent.go is the agent's side.
package agent
