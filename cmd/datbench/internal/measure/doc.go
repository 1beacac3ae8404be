// Package measure has what every kind of traffic needs to measure a row: the stages of a row, the tally (what a target
// has counted), round-trip times, CPU settings, and the check whether the row is valid.
//
// Ordering: Schedule.StageOf is called for operations in ascending order. Ownership: values belong to the goroutine
// that made them. Threading: one goroutine uses a value. Pin and GoRealtime change the calling thread, to which the
// goroutine must be locked.
package measure
