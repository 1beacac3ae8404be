// Package metrics shows open adapters to Prometheus: a Collector for any registry, and an Exporter that
// serves one of its own with pages for finding faults.
//
// docs/METRICS.md lists the metrics. Labels take few values: none names a connection or a peer. The
// counters are kept by the engines whether they are looked at or not, and a scrape stops an engine for
// microseconds only, so that a second between scrapes is not too short.
//
// Ordering: an adapter is shown between Add and the call of what Add returned. Ownership: an Exporter
// holds an adapter only for as long; of one that is closed meanwhile nothing is shown. Threading: every
// method may be called by any goroutine.
//
// To import the package makes net/http/pprof and expvar add their pages to http.DefaultServeMux, as they
// do for whoever imports them. An Exporter does not use that.
package metrics
