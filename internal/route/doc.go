// Package route provides the routing information that a link needs to address packets itself: routes, neighbours and
// path MTU of one interface, as in the kernel. Table.Answer also gives the Ethernet address for an answer to an unknown
// peer. For a link that sends through the kernel, Reach tells which destinations wait for no neighbour, over all
// interfaces.
//
// Ordering: each field of a Hop shows the latest state that the kernel reported. Ownership: a Hop from Resolve belongs
// to the caller until Release. Hops of one destination are one object, and destinations behind one next hop share its
// neighbour. Threading: any goroutine may call every method but Reach.Ask. Open binds the table to the network namespace of the
// calling thread; later calls work from any thread. No call waits for a neighbour.
package route
