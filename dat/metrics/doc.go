// Package metrics exports the counters of open adapters to Prometheus. A Collector has the metrics of one adapter and
// can be registered in any Prometheus registry. The subpackage exporter serves collectors over HTTP, with debug pages.
//
// docs/METRICS.md lists the metrics. Labels have few values: no label names a connection or a peer. The engines keep
// the counters whether or not a Collector exists. A Collector reads them at most once a second, whatever the rate of
// scrapes.
//
// Ordering: the calls may come in any order. A closed adapter has no metrics. Ownership: while a Collector is
// registered, it keeps a reference to its adapter. Threading: any goroutine may call every method.
package metrics
