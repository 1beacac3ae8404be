// Package report writes results as an HTML page. The page is one file that contains its charts and loads nothing from
// the network.
//
// Ordering: rows and files keep their order. Ownership: results are only read. Threading: any goroutine may call Write,
// one at a time.
package report
