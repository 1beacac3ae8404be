package lease

import "sync/atomic"

// counters of a Server, which never shrink.
type counters struct {
	granted, adopted, requests atomic.Uint64
	refused                    [len(statuses)]atomic.Uint64 // by status
}

// Counters are what a Server has counted since it was made.
type Counters struct {
	Granted, Adopted uint64            // leases
	Requests         uint64            // of all kinds, malformed ones included
	Refused          map[string]uint64 // requests and connections, by reason
	Connections      int               // that are open
}

// Counters returns the counters.
func (s *Server) Counters() Counters {
	c := Counters{Granted: s.counters.granted.Load(), Adopted: s.counters.adopted.Load(), Requests: s.counters.requests.Load(),
		Refused: make(map[string]uint64)}
	for n := 1; n < len(statuses); n++ {
		c.Refused[reasons[n]] = s.counters.refused[n].Load()
	}
	s.accounts.mu.Lock()
	c.Connections = s.accounts.total
	s.accounts.mu.Unlock()
	return c
}
