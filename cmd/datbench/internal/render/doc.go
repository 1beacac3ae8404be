// Package render writes what datbench has measured for a reader: tables of a report, of a comparison and of bounds, and the
// progress of a job. It computes nothing that another package needs.
//
// Ordering: as given. Ownership: reports are read, never changed; writers stay their owner's. Threading: one goroutine uses
// a Teller; functions may be called by any.
package render
