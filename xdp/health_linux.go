package xdp

import "sync/atomic"

// Health says whether a socket's two sides work.
type Health struct {
	TxProven bool   // a frame was transmitted and came back
	RxProven bool   // a packet arrived
	Stalled  bool   // packets wait and the transmit ring stands still
	Stalls   uint64 // times that it stood still for too long
	Reopens  uint64 // times that the socket was made anew for it
}

// health is what the watch of the device found out; any goroutine may read it.
type health struct {
	stalled         atomic.Bool
	stalls, reopens atomic.Uint64
}

// Health says whether the socket works. Nothing is proven on a closed one. Any goroutine may call it.
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

// txState is where the transmit side stands.
type txState struct {
	taken, done uint32 // the kernel's indices of the tx ring and the completion ring
	waits       bool   // there is something to transmit
}

// transmitting reads the words that the rings share with the kernel. Packets wait when the kernel has not taken them, and
// when it has taken as many as the ring has slots and gave none back. Any goroutine may call it.
func (s *Socket) transmitting() txState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := txState{taken: atomic.LoadUint32(s.tx.consumer), done: atomic.LoadUint32(s.comp.producer)}
	put := atomic.LoadUint32(s.tx.producer)
	t.waits = s.fd >= 0 && (put != t.taken || put-t.done >= s.tx.size)
	return t
}

// poke asks the kernel to transmit. Any goroutine may call it; the owner sees what moved. System calls: sendto.
func (s *Socket) poke() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd >= 0 {
		s.counters.txKicks.Add(1)
		_ = s.kick(false)
	}
}
