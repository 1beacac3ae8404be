package stream

import (
	"context"
	"sync"
	"time"
)

// An orphan is a stream that the program has closed before the peer has taken what was written, as Linux calls such a TCP
// connection. Its agent handles its events, and frees it at the end. The stack looks at each orphan every second, and
// resets one whose peer takes nothing.

// orphans are those of a stack.
type orphans struct {
	quota quota // of their number

	mu    sync.Mutex
	haste time.Time // until then, no Close waits for acknowledgements
}

// closeWait returns the time for which a Close waits for acknowledgements.
func (o *orphans) closeWait() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Now().Before(o.haste) {
		return 0
	}
	return closeWait
}

// hasten notes that a Close has waited without success.
func (o *orphans) hasten() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.haste = time.Now().Add(closeHaste)
}

// abandon makes a stream an orphan. It reports false if the peer's address has too many. If the adapter was closed
// meanwhile, the stream is freed instead. mu is held.
func (c *Conn) abandon() bool {
	if !c.stack.orphans.quota.take(c.peer(), 1) {
		return false
	}
	orphaned.add(1)
	c.life = orphan
	c.moved = move{c.position(), time.Now()}
	c.stack.keepTidy(c)
	c.watchIfDue()
	if c.phase == ended {
		c.adopt()
	}
	return true
}

// adopt ends the life of an orphan. The caller frees its objects. mu is held.
func (c *Conn) adopt() {
	c.life = freed
	c.stack.orphans.quota.give(c.peer(), 1)
	orphaned.add(-1)
}

// move is the last progress of an orphan.
type move struct {
	position uint64
	at       time.Time
}

// position grows whenever the peer acknowledges bytes, or its program reads some.
func (c *Conn) position() uint64 { return c.out.done + c.out.peer.consumed }

// stuck reports whether the peer of an orphan takes nothing for too long.
func (c *Conn) stuck(now time.Time) bool {
	if p := c.position(); p != c.moved.position {
		c.moved = move{p, now}
	}
	limit := orphanTime
	if c.in.received > c.in.consumed {
		limit = unreadTime
	}
	return now.Sub(c.moved.at) >= limit
}

// Drain waits until closed streams have delivered what was written to them, or until their peers are gone. A program
// calls it before it ends, with a context that bounds the wait. It returns the error of the context.
//
// Drain also closes the adapters that have no streams, and stay open for the next Dial. Other open adapters will be closed with
// their last stream.
func Drain(ctx context.Context) error {
	defer func() {
		opening.Lock()
		defer opening.Unlock()
		closeUnused()
		for _, s := range stacks {
			s.drained = true
		}
	}()
	select {
	case <-orphaned.none():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// orphaned counts the orphans of all stacks.
var orphaned counter

// counter counts things that come and go.
type counter struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed when n becomes 0; nil if nothing waits for that
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.zero != nil {
		close(c.zero)
		c.zero = nil
	}
}

// none returns a channel that is closed as soon as there is nothing.
func (c *counter) none() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.zero == nil {
		c.zero = make(chan struct{})
	}
	zero := c.zero
	if c.n == 0 {
		close(zero)
		c.zero = nil
	}
	return zero
}
