// Package park lets a goroutine sleep: with a Sleeper until a file descriptor is readable, and with a Patience while a
// loop cannot go on because another thread must.
//
// A goroutine that sleeps in ppoll(2) holds a processor (P) of the Go scheduler until the runtime's monitor thread takes
// the processor away, which takes 20 µs to 10 ms. Sleeping in the runtime's network poller holds none, but takes more
// system calls, and the scheduler wakes more threads. So a goroutine sleeps in ppoll while another processor is left
// over, and in the network poller otherwise. Decision 0013 has the alternatives and their figures.
//
// Ordering. If the descriptor is readable when Sleep is called, or becomes readable during the call, Sleep returns.
//
// Ownership. A Sleeper has an epoll and a timer descriptor. The caller keeps the descriptors that the Sleeper watches.
// If the caller closes one, the Sleeper forgets it.
//
// Threading. Any goroutine may call Sleep. On each Sleeper, one goroutine at a time may sleep in the network poller;
// others use ppoll. Close may be called when no goroutine is inside Sleep.
package park
