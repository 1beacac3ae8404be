package lease

import (
	"context"
	"sync"
	"time"
)

// account is what a Server knows of a user.
type account struct {
	connections int       // guarded by accounts.mu
	tokens      float64   // token bucket of requests, may be negative; guarded by accounts.mu
	updated     time.Time // of tokens
	// making has one token while a lease of the user is made, so that a user cannot keep those of others from the kernel.
	making chan struct{}
}

func newAccount(now time.Time) *account {
	return &account{tokens: requestBurst, updated: now, making: make(chan struct{}, 1)}
}

// refill adds the tokens of the time since the last call.
func (a *account) refill(now time.Time) {
	a.tokens = min(requestBurst, a.tokens+requestRate*now.Sub(a.updated).Seconds())
	a.updated = now
}

// take takes tokens and returns how long the request has to wait for them.
func (a *account) take(cost float64, now time.Time) time.Duration {
	a.refill(now)
	a.tokens -= cost
	return max(0, time.Duration(-a.tokens/requestRate*float64(time.Second)))
}

// accounts are the users with a connection or with less than a full bucket.
type accounts struct {
	mu    sync.Mutex
	byUID map[uint32]*account
	total int // connections of all
}

// enter counts a connection of a user, or returns nil if the user has most or the server has too many.
func (s *accounts) enter(uid uint32, most int, now time.Time) *account {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.byUID[uid]
	if s.total >= maxConnections || most == 0 || a != nil && a.connections >= most {
		return nil
	}
	if a == nil {
		a = newAccount(now)
		s.byUID[uid] = a
	}
	a.connections++
	s.total++
	return a
}

// leave ends enter.
func (s *accounts) leave(a *account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.connections--
	s.total--
}

// prune forgets the users without connections whose buckets are full.
func (s *accounts) prune(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, a := range s.byUID {
		a.refill(now)
		if a.connections == 0 && a.tokens >= requestBurst {
			delete(s.byUID, uid)
		}
	}
}

// wait waits until a user has tokens for a request.
func (s *accounts) wait(ctx context.Context, a *account, cost float64) error {
	s.mu.Lock()
	d := a.take(cost, time.Now())
	s.mu.Unlock()
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
