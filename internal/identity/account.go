package identity

import (
	"sync"
	"sync/atomic"
	"time"
)

// ConnectionBytes is the memory of one connection that counts for the limit Bytes, besides the packets that arrived
// early. A connection in secure mode has about 6.5 KB.
const ConnectionBytes = 8 << 10

// Account counts what the connections of one peer have, on all queues of an adapter. It outlives a Reload. Any goroutine
// may call its methods.
type Account struct {
	mu          sync.Mutex
	limits      Limits
	connections int
	halfOpen    int
	bytes       atomic.Int64 // no lock, because the owners of engines change it for each early packet
	mostBytes   atomic.Int64 // Limits.Bytes
	requests    bucket       // limited by Limits.Rate
	guesses     bucket       // wrong remote keys
}

// A peer may use maxGuesses wrong remote keys at once, and then guessRate in a second. While it may use none, it may
// not connect, because each connection is worth a guess.
const (
	maxGuesses = 64
	guessRate  = 1
)

// bucket is a token bucket (RFC 2697 §1). The zero bucket is full.
type bucket struct {
	tokens   float64
	filledAt time.Time
}

// fill fills the bucket up to size, with rate tokens in a second.
func (b *bucket) fill(now time.Time, rate, size float64) {
	b.tokens += rate * now.Sub(b.filledAt).Seconds()
	if b.filledAt.IsZero() || b.tokens > size {
		b.tokens = size
	}
	b.filledAt = now
}

// take takes a token, if there is one.
func (b *bucket) take() bool {
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// Shortage says which limit stands against a request.
type Shortage uint8

// The shortages.
const (
	NoShortage Shortage = iota
	Passing             // half-open=, rate=, wrong remote keys: there will be room soon
	Lasting             // connections=, bytes=: there is room when a connection ends
)

// setLimits sets the limits of a newer file of peers.
func (a *Account) setLimits(l Limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limits = l
	a.mostBytes.Store(l.Bytes)
}

// Connect counts a half-open request, which is a connection too, unless a limit stands against it. A request that finds
// one has used its token all the same.
func (a *Account) Connect(now time.Time) Shortage {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := &a.limits
	a.guesses.fill(now, guessRate, maxGuesses)
	switch {
	case a.guesses.tokens < 1:
		return Passing
	case !a.takeToken(now), l.HalfOpen > 0 && a.halfOpen >= l.HalfOpen:
		return Passing
	case l.Connections > 0 && a.connections >= l.Connections, !a.MayHold(ConnectionBytes):
		return Lasting
	}
	a.halfOpen++
	a.connections++
	a.Hold(ConnectionBytes)
	return NoShortage
}

// takeToken takes a token for a request from the bucket, which has the requests of one second.
func (a *Account) takeToken(now time.Time) bool {
	if a.limits.Rate == 0 {
		return true
	}
	a.requests.fill(now, float64(a.limits.Rate), float64(a.limits.Rate))
	return a.requests.take()
}

// Guess counts a wrong remote key.
func (a *Account) Guess(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.guesses.fill(now, guessRate, maxGuesses)
	a.guesses.take()
}

// Confirm stops counting a request as half-open.
func (a *Account) Confirm() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.halfOpen--
}

// Disconnect stops counting a connection.
func (a *Account) Disconnect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.connections--
	a.Hold(-ConnectionBytes)
}

// MayHold reports whether the host may hold n further bytes for the peer.
func (a *Account) MayHold(n int) bool {
	most := a.mostBytes.Load()
	return most == 0 || a.bytes.Load()+int64(n) <= most
}

// Hold counts n further bytes. n may be negative.
func (a *Account) Hold(n int) { a.bytes.Add(int64(n)) }

// idle reports whether the account counts nothing.
func (a *Account) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.connections == 0 && a.bytes.Load() == 0
}

// accounts has the accounts of the peers that have connected.
type accounts struct {
	mu   sync.Mutex
	byID map[ID]*Account
}

// of returns the account of a peer, and makes it if there is none.
func (s *accounts) of(p *Peer) *Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.byID[p.id]
	if a == nil {
		a = new(Account)
		a.setLimits(p.limits)
		if s.byID == nil {
			s.byID = map[ID]*Account{}
		}
		s.byID[p.id] = a
	}
	return a
}

// renew gives all accounts the limits of a newer file of peers. It drops those of peers that are gone, once they count
// nothing.
func (s *accounts) renew(next *Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, a := range s.byID {
		if p := next.Find(id); p != nil {
			a.setLimits(p.limits)
		} else if a.idle() {
			delete(s.byID, id)
		}
	}
}
