// Package compare says whether results have changed between two sets of files, and whether the runs that
// there are can tell.
//
// Ordering: rows stay in the order of the old files, those that are new follow. Ownership: results are
// read, never changed. Threading: any goroutine, one at a time for the same reports.
package compare
