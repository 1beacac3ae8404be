// Package exporter serves the metrics of open adapters, for programs without a Prometheus registry of their
// own, and pages for finding faults: every connection, the process's variables, profiles.
//
// Ordering: an adapter is shown between Add and the call of what Add returned. Ownership: an Exporter
// holds an adapter only for as long; of one that is closed meanwhile nothing is shown. Threading: every
// method may be called by any goroutine.
//
// To import the package makes net/http/pprof and expvar add their pages to http.DefaultServeMux, as they
// do for whoever imports them. An Exporter does not use that; a program that serves that mux to strangers
// uses package metrics alone.
package exporter
