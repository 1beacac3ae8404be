// Package progress shows the progress of a command-line job: a bar on a terminal, a line per step elsewhere.
//
// Ordering: steps begin one after the other, and End comes last. Ownership: the writer belongs to the caller.
// Threading: one goroutine at a time uses a display.
package progress
