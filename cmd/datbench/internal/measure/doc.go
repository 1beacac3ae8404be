// Package measure has the parts that all kinds of traffic need to measure a row: the stages of a row, the tally that a
// target sends, round-trip times, CPU settings, and the check whether the row is valid.
//
// Ordering: a Schedule is asked for the stages of operations in ascending order. Ownership: values belong to the
// goroutine that made them. Threading: one goroutine uses a value. Pin and GoRealtime act on the calling thread, to
// which the goroutine must be locked.
package measure
