// Package progress decides which goroutine drives the engines of an adapter, when it does so, and who wakes whom.
// docs/PROGRESS.md is its design.
//
// Ordering. What a Poll made visible is there when the call returns, and a waiter that was parked is woken after it.
// A post that finds the engine owned is seen by the owner before or when it gives the engine up.
//
// Ownership. An engine has at most one owner, the holder of its wire.Token, in one of the roles below. A Driver owns
// what belongs to it until Close, which keeps the token for ever: calls that are still on their way find the engine owned.
//
// Threading. A Driver and a Group may be used by any goroutine, methods that say so by the owner only. One goroutine a
// Driver is the background owner.
package progress

import (
	"math"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Roles of the owner of an engine.
const (
	Nobody     wire.Role = iota
	Poster               // posts, and sends what it posted
	Poller               // polls once, in Dequeue
	Waiter               // polls in Wait, until its event is there or it parks
	Background           // is the engine's own goroutine
	Control              // connects, accepts, reads statistics, ends
	Closed               // has closed the engine, and keeps the ownership
)

// Phase says what the background owner of an engine does.
type Phase uint32

// Phases of the background owner.
const (
	Polling  Phase = iota // it polls: nobody else drives the engine
	Watching              // callers drive the engine: it looks from time to time whether they still do
	Sleeping              // it sleeps in the link until a packet, a deadline or a Wake, or is about to
	Stopped               // the driver is closed
)

var started = time.Now()

// Now is the engines' time. A call takes about 30 ns.
func Now() wire.Time { return wire.Time(time.Since(started)) }

// Forever is the limit of a wait without one.
const Forever wire.Time = math.MaxInt64

// Until is the limit of a wait that begins now; a negative timeout has none.
func Until(timeout time.Duration) wire.Time {
	if timeout < 0 {
		return Forever
	}
	return Now().Add(timeout)
}
