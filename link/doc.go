// Package link is the interface between the protocol and the networks below it. A Link moves batches of UDP payloads.
//
// Ordering: a link may lose, duplicate and reorder packets. The frames of one packet keep their order. Ownership: a
// frame has one owner at a time, and each method of Link says who owns it afterwards. Threading: one owner drives a
// link. Other goroutines may call Wait, Wake and the methods that resolve paths or report state.
//
// Implementations are xdp (AF_XDP), udplink (a kernel UDP socket) and internal/simlink (virtual time). A Link may wrap
// another one: package tap of datbench impairs and captures packets. A link that learns of ports without a listener is a
// Reporter too, and one that sends groups of packets is a Grouper.
package link
