// Package ends opens the two ends of a measurement for each kind of traffic: DAT, streams, raw frames and kernel TCP. A
// target serves rows until it is closed. An initiator measures one row after the other. A row is one measurement, and
// becomes one row of the result table.
//
// Ordering: the target must be open before an initiator measures against it. Ownership: the opener of an end closes it.
// Threading: a target has its own goroutines; one goroutine uses an initiator.
//
// ends.go has the interfaces of a target and an initiator. server.go and datclient.go implement them for DAT,
// streams.go for streams, rawside.go for raw frames, baseline.go for kernel TCP, and shared.go for kernel TCP beside an
// open adapter. arbiter.go decides which client may use a DAT target.
package ends
