// Package metrics shows the counters of open adapters to Prometheus.
//
// Ordering: an adapter is shown between Add and Remove. Ownership: an Exporter holds an adapter
// only for as long; Remove comes before the adapter is closed. Threading: every method may be
// called by any goroutine.
package metrics
