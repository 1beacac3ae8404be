// Package workload measures one row of DAT operations. It has the request that the initiator sends for a row, the
// connections and memory of both sides, and their work for each operation and metric.
//
// Ordering: an Active connects, then measures; a Passive serves one row. Ownership: connections, memory and heap are
// freed with their row; the adapter belongs to its opener. Threading: one goroutine, locked to its thread, uses the
// connections of a row and drives the adapter by polling.
//
// Reading order: workload.go has the table of workloads. conn.go and memory.go are the common base of the workloads;
// pingpong.go, stream.go, requests.go, bidir.go and transfer.go implement them. active.go and passive.go run a row at
// the initiator and at the target.
package workload
