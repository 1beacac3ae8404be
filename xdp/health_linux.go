package xdp

import "sync/atomic"

// Health reports whether the two directions of a socket work.
type Health struct {
	TxProven bool   // the kernel has returned a transmitted frame
	RxProven bool   // a packet has arrived
	Stalled  bool   // packets wait and the transmit ring does not move
	Stalls   uint64 // how often the transmit ring has stalled
	Reopens  uint64 // how often the socket was reopened because of a stall
}

// health holds the findings of the device's watch. Any goroutine may read it.
type health struct {
	stalled         atomic.Bool
	stalls, reopens atomic.Uint64
}

// Health returns the state of the socket. On a closed socket nothing is proven. Any goroutine may call it.
func (s *Socket) Health() Health {
	h := Health{Stalled: s.health.stalled.Load(), Stalls: s.health.stalls.Load(), Reopens: s.health.reopens.Load()}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd >= 0 {
		h.TxProven = atomic.LoadUint32(s.comp.producer) != 0
		h.RxProven = atomic.LoadUint32(s.rx.producer) != 0
	}
	return h
}

// txState is a snapshot of the transmit side.
type txState struct {
	taken, done uint32 // the kernel's indices in the tx ring and the completion ring
	waits       bool   // packets wait to be transmitted
	held        bool   // copy mode: packets that the kernel took were not yet freed by their receivers
}

// transmitting returns a snapshot of the transmit side. It reads only ring words that are shared with the kernel, so
// any goroutine may call it. Packets wait to be transmitted if the kernel has not yet taken every slot that was
// submitted to the tx ring. They also wait if three quarters of tx.size of the submitted slots have no completion yet,
// because the owner may hold the frames for the others.
func (s *Socket) transmitting() txState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := txState{taken: atomic.LoadUint32(s.tx.consumer), done: atomic.LoadUint32(s.comp.producer)}
	put := atomic.LoadUint32(s.tx.producer)
	t.waits = s.fd >= 0 && (put != t.taken || put-t.done >= s.tx.size-s.tx.size/4)
	t.held = !s.zc && t.taken != t.done
	return t
}

// poke makes the kernel transmit. Any goroutine may call it; the owner reclaims the completed frames later.
//
// System calls: sendto.
func (s *Socket) poke() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd >= 0 {
		s.counters.txKicks.Add(1)
		_ = s.kick(false)
	}
}
