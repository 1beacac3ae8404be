// Package simlink is a network in memory: links that join the protocol to itself with no kernel.
//
// Time is virtual by default: packets move only in Net.Advance, on the caller's goroutine, and one
// seed replays one run exactly. With Config.Immediate a packet is in the receiver's ring when Send
// returns, Wait sleeps for real, and links may be driven from different goroutines.
//
// Ordering: packets between two links keep their order unless Reorder or Duplicate says otherwise.
// Ownership: payload is copied once into a frame of the receiving link (once more in virtual time,
// while it is in flight), so a frame never leaves the link that made it. A frame that is freed
// twice, sent without being held or written after it was given back panics: the package is for
// tests, and such a bug must not pass. Threading: in virtual time a Net and all its links belong to
// one goroutine; in immediate mode the rules of link.Link hold and the methods of Net may be called
// by any goroutine.
package simlink
