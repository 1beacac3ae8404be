// Package tool describes the benchmark programs of the peers: how each side is started, how its output is parsed, and
// its Debian package.
//
// Ordering: none. Ownership: values are plain and belong to their holder. Threading: one goroutine at a time uses a
// value.
package tool
