// Package render prints results for a reader: tables of a report, of a comparison and of bounds, and the progress of a
// job. All figures come from the other packages; render only formats them.
//
// Ordering: as given. Ownership: reports are only read; writers belong to their opener. Threading: one goroutine uses a
// ProgressPrinter; any goroutine may call the functions.
package render
