// Package progress runs the engines of an adapter. It decides which goroutine polls an engine and when, and it wakes
// goroutines that sleep. docs/PROGRESS.md describes the design.
//
// Ordering. The completions of a Poll are visible when the call returns; a parked waiter is woken after that. If a
// post finds the engine owned, the owner processes the post, at the latest when it gives the engine up.
//
// Ownership. An engine has at most one owner: the goroutine that holds its wire.Token, in one of the roles below. A
// Driver manages one engine and its link. A closed Driver keeps the token for ever, so that a call in progress finds
// the engine owned and does not touch it.
//
// Threading. Any goroutine may use a Driver and a Group, except for methods that only the owner may call; their
// comments say so. Each Driver has one goroutine, the background owner.
package progress

import (
	"math"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Roles of the owner of an engine: what the owner does.
const (
	Nobody     wire.Role = iota
	Poster               // transmits what it has posted
	Poller               // polls once, in Dequeue
	Waiter               // polls in Wait, until the event has arrived or it parks
	Background           // the driver's own goroutine
	Control              // connects, accepts, disconnects or reads statistics
	Closed               // the driver is closed and keeps the token
)

// Phase is what the background owner of an engine does.
type Phase uint32

// Phases of the background owner.
const (
	Polling  Phase = iota // it polls, because no caller does
	Watching              // callers poll the engine; it checks at intervals whether they still do
	Sleeping              // it sleeps in Link.Wait until a packet, a deadline or Link.Wake, or is about to
	Stopped               // the driver is closed
)

var started = time.Now()

// Now returns the time of the engines: nanoseconds since the program started, from the monotonic clock. A call takes
// about 30 ns.
func Now() wire.Time { return wire.Time(time.Since(started)) }

// Forever is the limit of a wait without a timeout.
const Forever wire.Time = math.MaxInt64

// Until returns the limit of a wait that begins now. A negative timeout means Forever.
func Until(timeout time.Duration) wire.Time {
	if timeout < 0 {
		return Forever
	}
	return Now().Add(timeout)
}
