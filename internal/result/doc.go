// Package result is what a run of datbench leaves behind: its environment and its rows, and the JSON
// file of them that scripts, the report page and the comparison read.
//
// Ordering: none. Ownership: values are plain and belong to whoever has them. Threading: a value is
// used by one goroutine at a time.
package result
