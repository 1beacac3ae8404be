// Package metrics exports the counters of open adapters to Prometheus: a Collector for any registry. Its subpackage
// exporter serves collectors over HTTP, with debug pages.
//
// docs/METRICS.md lists the metrics. Labels have few values: none names a connection or a peer. The engines keep the
// counters whether or not a Collector exists. A Collector reads them once a second at most, whatever the rate of scrapes.
//
// Ordering: none; a closed adapter has no metrics. Ownership: a Collector refers to its adapter for as long as it is
// registered. Threading: any goroutine may call every method.
package metrics
