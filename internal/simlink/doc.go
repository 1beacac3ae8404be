// Package simlink is a network in memory. Its links connect instances of the protocol without a kernel.
//
// Time is virtual by default: packets move only in Net.Advance, on the caller's goroutine, and the same seed repeats
// the same run exactly. With Config.Immediate a packet is in the receiver's ring when Send returns, Wait really sleeps,
// and different goroutines may drive the links.
//
// Between the hosts there may be a switch, with a queue in front of each host (Config.Switch).
//
// Ordering: packets between two links keep their order unless Reorder, Duplicate or Hold is set, or the delay becomes
// shorter. Ownership: payload is copied into a frame of the receiving link, so a frame never leaves its link. In virtual
// time it is copied twice, because a packet in flight has its own memory. With Config.Group, packets that arrived as a
// group share a block, which is free when all of them are. The package is for tests: it panics if a frame is freed
// twice, sent without being held, or written after it was freed. Threading: in virtual time a Net and all its links
// belong to one goroutine. In immediate mode the rules of link.Link apply, and any goroutine may call the methods of
// Net.
package simlink
