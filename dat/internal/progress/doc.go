// Package progress runs the engines of an adapter. It decides which goroutine polls an engine and when, and it wakes
// goroutines that sleep. docs/PROGRESS.md describes the design.
//
// Ordering. When a Poll returns, its completions are visible; a parked waiter is woken after that. If the engine is
// owned when a goroutine posts, the owner processes the post, at the latest when the owner gives the engine up.
//
// Ownership. An engine has at most one owner: the goroutine that holds its wire.Token, in one of the roles below. A
// Driver manages one engine and its link. A closed Driver keeps the token for ever, so that calls in progress find the
// engine owned and do not use it.
//
// Threading. Any goroutine may call the methods of a Driver and a Group, except methods whose comment says that only
// the owner may call them. Each Driver starts one goroutine, the background owner.
package progress

import (
	"math"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Roles of the owner of an engine: what the owner does.
const (
	Nobody     wire.Role = iota
	Poster               // a goroutine that transmits what it has posted
	Poller               // a goroutine in Dequeue, which polls once
	Waiter               // a goroutine in Wait, which polls until its event arrives or it parks
	Background           // the background owner
	Control              // a goroutine that connects, accepts, disconnects or reads statistics
	Closed               // nobody: the driver is closed and keeps the token
)

// Phase is the activity of the background owner of an engine.
type Phase uint32

// Phases of the background owner.
const (
	Polling  Phase = iota // polls the engine, because no caller does
	Watching              // does not poll, because callers do; checks at intervals whether they still do
	Sleeping              // sleeps in Link.Wait, or is about to: until a packet, a deadline or Link.Wake
	Stopped               // has ended, because the driver is closed
)

var started = time.Now()

// Now returns the current time of the engines: nanoseconds since the program started, from the monotonic clock. A call
// takes about 30 ns.
func Now() wire.Time { return wire.Time(time.Since(started)) }

// Forever is the limit of a wait without a timeout.
const Forever wire.Time = math.MaxInt64

// Until converts the timeout of a wait that begins now to a time limit. A negative timeout means Forever.
func Until(timeout time.Duration) wire.Time {
	if timeout < 0 {
		return Forever
	}
	return Now().Add(timeout)
}
