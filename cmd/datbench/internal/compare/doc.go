// Package compare finds changes between two sets of result files, and says whether there are enough runs to decide. It
// also judges results by bounds on their ratios to other rows of the same run.
//
// Ordering: rows keep the order of the old files, and new rows follow; bounds keep the order of their file. Ownership:
// results are only read. Threading: any goroutine may call the functions, but one at a time for the same reports.
package compare
