// Package network measures the protocol in simulated networks: many hosts around a switch, long paths, hosts that differ
// in MTU, and faults. It is in virtual time, so that the same seed gives the same figures on any machine.
//
// A world has one host for each engine. A host is polled only when a packet arrives, when a deadline of its engine or of
// its application has passed, or after a post. A poll takes time of the host, and so does each packet. A scenario is a
// row of a table: a network, what the hosts do, and what is measured. Cases lists all rows, Targets what they have to
// reach. Command measure prints them.
//
// Ordering: events happen in the order of their times. Ownership: a World owns its network and its engines. Threading: a
// World belongs to one goroutine, and several worlds may run at the same time.
package network
