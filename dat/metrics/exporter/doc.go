// Package exporter serves the metrics of open adapters over HTTP, for programs without a Prometheus registry of their
// own. It also serves debug pages: every connection, the variables of the process (expvar), and profiles (pprof).
//
// Ordering: an adapter is exported from Add until the function that Add returned is called. Ownership: an Exporter
// refers to an adapter during that time. If the adapter is closed meanwhile, it exports no metrics. Threading: any
// goroutine may call every method.
//
// Importing this package adds the pages of net/http/pprof and expvar to http.DefaultServeMux, as any import of those
// packages does. An Exporter does not use that mux. A program that serves http.DefaultServeMux to untrusted clients
// should use package metrics alone.
package exporter
