// Package tool knows the programs that a peer is measured with: how each side is started, how it says what
// it measured, and what Debian calls it.
//
// Ordering: none. Ownership: values are plain and belong to whoever has them. Threading: a value is used by
// one goroutine at a time.
package tool
