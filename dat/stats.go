package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// Counter is a named count of a device.
type Counter struct {
	Name  string
	Value uint64
}

// Stats are the counters of an adapter, summed over its queues, and where it stands now. They are of all
// opens of the adapter together, apart from Dispatchers.
type Stats struct {
	ProtocolStats
	// RoundTrip is the time from sending a packet to its acknowledgement, less what the peer kept it:
	// one sample for each packet that acknowledges something new.
	RoundTrip Histogram
	// Latency is the time from when the first packet of a request left to when the request completed
	// successfully: a round trip, the peer's work, and every repeat. What a request waits before for credit or
	// for the window is not in it. Binds, of which nothing leaves, are not counted.
	Latency Histogram

	Link LinkStats
	// Steering are the verdicts of the XDP program, Queues the AF_XDP sockets; empty without them.
	Steering []Counter
	Queues   []QueueStats

	Connections int // that exist, those included which wait for the peer to confirm the end
	ConnStats
	Dispatchers EVDStats

	Triggers uint64 // of notification objects
	Wakeups  uint64 // goroutines that notification objects released
	Sleeps   uint64 // times a goroutine that waited for an event went to sleep
	Mode     string // how packets move: IAAttr.Mode
}

// QueueStats are the rings of one AF_XDP socket, and the kernel's counts of it (XDP_STATISTICS).
type QueueStats struct {
	Queue  int
	Rings  []RingStats
	Kernel []Counter

	TxProven, RxProven bool   // a frame was transmitted and came back; a packet arrived
	Stalled            bool   // packets wait and the transmit ring stands still
	Stalls             uint64 // times that it stood still for 200 ms
	Reopens            uint64 // times that the socket was made anew for it
}

// RingStats says how full a ring is.
type RingStats struct {
	Name       string // fill, rx, tx, completion
	Used, Size int    // slots
}

// ConnStats sum the connections of an adapter that are not over.
type ConnStats struct {
	Connecting, Accepting, Established, Draining int

	Window   float64 // packets that may be in the network
	InFlight int     // packets that are there
	Credits  int     // messages that peers can take
	Starved  int     // connections with a message that waits for a receive at the peer
	Requests int     // outstanding
}

// EVDStats sum the dispatchers of one open of an adapter, the asynchronous one included.
type EVDStats struct {
	Count   int
	Queued  int     // events that wait, in all of them
	Longest int     // and in the one with most
	Fullest float64 // the largest part of a dispatcher that is in use, 0 to 1
}

// tallies count what happens outside the engines. They belong to an adapter.
type tallies struct{ triggers, wakeups atomic.Uint64 }

// deviceStats is what a provider knows of its device.
type deviceStats struct {
	steering []Counter
	queues   []QueueStats
}

// Stats reads the counters. It stops each engine for a few microseconds, and again for every 32 of its
// connections; nothing else waits for it. Errors: ErrInvalidHandle, also when the adapter closes meanwhile.
func (ia *IA) Stats() (Stats, error) {
	dispatchers, err := ia.evdStats()
	if err != nil {
		return Stats{}, err
	}
	a := ia.a
	s := Stats{Dispatchers: dispatchers, Mode: a.mode(), Triggers: a.tallies.triggers.Load(), Wakeups: a.tallies.wakeups.Load(), Sleeps: a.engines.Parked()}
	var protocol wire.Stats
	var links link.Stats
	for _, d := range a.drivers {
		if !d.Own() {
			return Stats{}, ErrInvalidHandle
		}
		protocol.Add(d.eng.Stats())
		s.Connections += d.eng.Connections()
		d.Disown()
		links.Add(d.link.Stats())
		if err := d.inspect(s.ConnStats.add); err != nil {
			return Stats{}, err
		}
	}
	s.ProtocolStats, s.Link = ProtocolStats(protocol.Counters), LinkStats(links)
	s.RoundTrip, s.Latency = Histogram(protocol.RoundTrip), Histogram(protocol.Latency)
	if a.report != nil {
		r := a.report()
		s.Steering, s.Queues = r.steering, r.queues
	}
	return s, nil
}

// add counts one connection.
func (s *ConnStats) add(c *wire.ConnInfo) {
	switch c.State {
	case wire.Connecting:
		s.Connecting++
	case wire.Accepting:
		s.Accepting++
	case wire.Established:
		s.Established++
	case wire.Draining:
		s.Draining++
	default:
	}
	s.Window += c.Window
	s.InFlight += c.InFlight
	s.Credits += max(c.Credits, 0)
	s.Requests += c.Requests
	if c.Starved {
		s.Starved++
	}
}

// evdStats fails on an adapter that was closed.
func (ia *IA) evdStats() (s EVDStats, err error) {
	if err := ia.lock(); err != nil {
		return EVDStats{}, err
	}
	defer ia.mu.Unlock()
	for e := range ia.evds {
		s.add(e)
	}
	if e := ia.async; e != nil && e.ia == ia && e.usable() == nil {
		s.add(e)
	}
	return s, nil
}

func (s *EVDStats) add(e *EVD) {
	n := e.Len()
	s.Count++
	s.Queued += n
	s.Longest = max(s.Longest, n)
	s.Fullest = max(s.Fullest, float64(n)/float64(e.QLen()))
}
