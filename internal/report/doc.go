// Package report makes a page of results: one HTML file that holds all it shows, charts included, and
// asks nothing of the network.
//
// Ordering: rows and files stay as they were given. Ownership: results are read, never changed.
// Threading: Write may be called by any goroutine, by one at a time.
package report
