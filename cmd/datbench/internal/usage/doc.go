// Package usage measures the fraction of a core that a thread had. A low fraction shows that the CPU starved a
// measurement.
//
// Ordering: Start comes before Share. Ownership: a Usage is a value. Threading: the same goroutine, locked to its
// thread, calls Start and Share.
package usage
