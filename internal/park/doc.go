// Package park lets a goroutine sleep until a file descriptor is readable, without holding a processor (P) of the Go
// scheduler. A goroutine that sleeps in ppoll(2) holds one until the runtime's monitor thread takes it away, which
// takes 20 µs to 10 ms. Decision 0013 has the alternatives and their figures.
//
// Ordering. If the descriptor is readable when Wait is called, or becomes so during the call, Wait returns.
//
// Ownership. A Bench has an epoll and a timer descriptor; the caller keeps the descriptors that Wait watches. If one is
// closed, the Bench forgets it.
//
// Threading. Any goroutine may call Wait, but only one sleeps; for the others Wait returns false immediately. Close may
// be called when no goroutine is inside Wait.
package park
