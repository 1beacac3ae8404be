// Package render prints results: tables of a report, of a comparison and of bounds, and the progress of a job. All
// figures come from the other packages; render only formats them.
//
// Ordering: the output has the order of the input. Ownership: render only reads reports; writers belong to their
// opener. Threading: one goroutine uses a ProgressPrinter; any goroutine may call the functions.
package render
