// Package progress is how a job on the command line says how far it is: a bar on a terminal, a line for
// each step elsewhere.
//
// Ordering: steps begin in turn, End comes last. Ownership: the writer stays its owner's. Threading: one
// goroutine at a time uses a display.
package progress
