// Package ends opens the two ends of a link for each kind of traffic: DAT, raw frames and kernel TCP. A target serves until
// it is closed, an initiator measures one row after the other.
//
// Ordering: a target is open before an initiator measures against it. Ownership: who opens an end closes it. Threading: a
// target has goroutines of its own; one goroutine uses an initiator.
package ends
