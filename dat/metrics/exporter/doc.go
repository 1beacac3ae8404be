// Package exporter serves the metrics of open adapters over HTTP, for programs without a Prometheus registry of their
// own. It also serves debug pages: every connection, the variables of the process (expvar), and profiles (pprof).
//
// Ordering: Add returns a function. An adapter is exported from the call of Add until the call of that function.
// Ownership: during that time an Exporter keeps a reference to the adapter. If the adapter is closed, the Exporter
// exports no metrics of it. Threading: any goroutine may call every method.
//
// Importing this package adds the pages of net/http/pprof and expvar to http.DefaultServeMux, because it imports those
// packages. An Exporter does not use http.DefaultServeMux. A program that serves http.DefaultServeMux to untrusted
// clients should import only package metrics.
package exporter
