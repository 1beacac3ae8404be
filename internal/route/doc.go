// Package route provides the routes and neighbours of one interface, as the kernel has them. A link that bypasses the
// kernel needs them to address packets itself. Table.Answer returns the MAC address for an answer to an unknown peer.
// For a link that sends through the kernel, Reach reports which destinations, over all interfaces, need not wait for a
// neighbour, and the MTU of a route.
//
// Ordering: each field of a Hop has the latest state that the kernel reported. Ownership: a Hop from Resolve belongs to
// the caller until Release. All Hops of one destination are one object, and destinations behind one next hop share its
// neighbour. Threading: any goroutine may call every method except Reach.Ask. Open binds the table to the network
// namespace of the calling thread; later calls work from any thread. No call waits for a neighbour.
// Only Resolve, Refresh, Open and OpenReach wait for the kernel.
package route
