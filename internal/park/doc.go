// Package park lets a goroutine sleep until a file descriptor is readable, without holding a processor (P) of the Go
// scheduler. A goroutine that sleeps in ppoll(2) holds one until the runtime's monitor thread takes it away, which
// takes 20 µs to 10 ms. Decision 0013 has the alternatives and their figures.
//
// Ordering. If the descriptor is readable when Sleep is called, or becomes readable during the call, Sleep returns.
//
// Ownership. A Sleeper has an epoll and a timer descriptor. The caller keeps the descriptors that the Sleeper watches.
// If the caller closes one, the Sleeper forgets it.
//
// Threading. Any goroutine may call Sleep, but only one sleeps: for the others Sleep returns false immediately. Close
// may be called when no goroutine is inside Sleep.
package park
