// Package result defines the results of a datbench run: its environment, its rows, and the JSON file. Scripts, the
// report page and the comparison read this file.
//
// Ordering: none. Ownership: values are plain and belong to their holder. Threading: one goroutine at a time uses a
// value.
//
// row.go has the identity of a measurement, result.go its figures, report.go the file.
package result
