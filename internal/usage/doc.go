// Package usage measures the share of a core that a thread has had, which tells a measurement from a starved one.
//
// Ordering: Start comes before Share. Ownership: a Usage is a value. Threading: Start and Share are called by one
// goroutine that is locked to its thread.
package usage
