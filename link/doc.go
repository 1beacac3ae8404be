// Package link is the one seam below the protocol: batches of UDP payloads, and who owns the
// memory they lie in.
//
// Ordering: a link may lose, repeat and reorder packets as a network may; within one packet the
// frames keep their order. Ownership: a frame belongs to exactly one side at a time, and each
// method of Link says who has it afterwards. Threading: one owner drives a link; only Wait, Wake
// and the methods that resolve paths or report may be called by others.
//
// Links are xdp (AF_XDP), udplink (a kernel UDP socket) and internal/simlink (virtual time);
// internal/tap is a link over a link.
package link
