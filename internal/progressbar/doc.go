// Package progressbar shows the progress of a command-line job: a bar on a terminal, otherwise a line per step.
//
// Ordering: steps begin one after the other, and End comes last. Ownership: the writer belongs to the caller.
// Threading: one goroutine at a time uses a display.
package progressbar
