// Package agent runs the two ends of a benchmark in two processes. The main job starts a pair of agents, which are
// copies of this program. One agent opens the target and the other opens the initiator, and the initiator measures
// rows. A row is one measurement. The main job sends the agents commands; a command is one line of JSON. The kernel
// kills the agents when the main job dies, so no process is left behind.
//
// Ordering: a phase is a list of rows with the same two ends. Both ends open it, measure it row by row, and close it.
// Ownership: a Pair owns its processes. Threading: one goroutine uses a Pair.
//
// pair.go and remote.go are the code of the main job, and agent.go is the code of an agent.
package agent
