// Package measure has what every kind of traffic needs to measure a row: its stages, the tally that a target sends, round
// trips, CPUs, and the judgement whether the row is a measurement.
//
// Ordering: a schedule is asked in the order of the operations. Ownership: values belong to their maker. Threading: one
// goroutine uses a value; Pin and GoRealtime act on the calling thread, to which the goroutine is locked.
package measure
