// Package compare says whether results have changed between two sets of files, and whether the runs that
// there are can tell; and whether what they are beside others of the same run keeps its bounds.
//
// Ordering: rows stay in the order of the old files, those that are new follow; bounds stay in that of
// their file. Ownership: results are read, never changed. Threading: any goroutine, one at a time for the
// same reports.
package compare
