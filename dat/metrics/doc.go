// Package metrics shows open adapters to Prometheus: a Collector for any registry. Package exporter below it
// serves collectors over HTTP, with pages for finding faults.
//
// docs/METRICS.md lists the metrics. Labels take few values: none names a connection or a peer. The
// counters are kept by the engines whether they are looked at or not, and a scrape stops an engine for
// microseconds only, so that a second between scrapes is not too short.
//
// Ordering: none; of an adapter that is closed nothing is shown. Ownership: a Collector holds its adapter for
// as long as it is registered. Threading: every method may be called by any goroutine.
package metrics
