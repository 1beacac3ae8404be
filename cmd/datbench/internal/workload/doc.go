// Package workload measures one row of DAT operations: the request for it, its connections and memory, and what both
// sides do for each operation and metric.
//
// Ordering: an Active connects, then measures; a Passive serves once. Ownership: connections, memory and heap of a row
// are freed with it, the adapter is its opener's. Threading: one goroutine, locked to its thread, uses the connections of
// a row and drives the adapter by polling.
package workload
