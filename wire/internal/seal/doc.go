// Package seal encrypts and authenticates the packets of a secure connection with AES-128-GCM, and changes the keys of
// the connection in phases, as RFC 9001 §6 does. Decision 0016 has the layout of a packet and the rules of the phases.
//
// Ordering. Each sealed packet has a counter of its own, whatever it carries. Packets may be opened in any order that the
// replay window allows, and each of them once. Only the end that leads starts a key update; the other end follows.
//
// Ownership. Seal and Open work in the memory of the packet. A Session holds the keys until Wipe. The schedules inside
// crypto/aes cannot be overwritten; they stay until the memory is used again.
//
// Threading. A Session has one owner.
package seal
