// Package route keeps what a link needs to address packets itself: routes, neighbours and path MTU
// of one interface, as the kernel has them; and the Ethernet addresses for answers to whoever asks (Table.Answer).
//
// Ordering: a Hop shows the newest state that the kernel told, each field on its own. Ownership: a
// Hop from Resolve is held until Release; hops of one destination are one object, and destinations
// behind one next hop share its neighbour. Threading: every method may be called by any goroutine.
// Open binds the table to the network namespace of the calling thread; later calls do not depend on
// their thread. Nothing here waits for a neighbour to answer.
package route
