package dat

import (
	"slices"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// Counter is a named counter of a device.
type Counter struct {
	Name  string
	Value uint64
}

// Stats has the counters of an adapter, summed over its queues, and its current state. Dispatchers describes the
// dispatchers of the IA on which Stats was called; the other fields describe all opens together.
type Stats struct {
	ProtocolStats
	// RoundTrip has the times from sending a packet to the arrival of its acknowledgement. The time for which the peer
	// delayed the acknowledgement is subtracted. Each packet that acknowledges new data gives one sample.
	RoundTrip Histogram
	// Latency has the times from the first packet of a request to the successful completion of the request. This
	// includes the round trip, the work of the peer, and retransmissions. It does not include the time in which the
	// request waited for credit or for the congestion window before its first packet. Binds are not counted, because
	// they send no packet.
	Latency Histogram

	Link LinkStats
	// Steering counts packets by the verdict of the XDP program. Queues describes the AF_XDP sockets. Without AF_XDP,
	// both fields are empty.
	Steering []Counter
	Queues   []QueueStats

	Connections int // existing connections, including those whose end the peer has not confirmed yet
	ConnStats
	// Keys counts the connections by the key of this host. It has each key of the key file in secure mode, and each key that
	// a connection still uses.
	Keys        []KeyStats
	Dispatchers EVDStats

	Triggers uint64 // triggers of notification objects
	Wakeups  uint64 // goroutines released by notification objects
	Sleeps   uint64 // times that a goroutine slept while it waited for an event
	Mode     string // current mode, as in IAAttr.Mode
}

// QueueStats describes one AF_XDP socket.
type QueueStats struct {
	Queue  int
	Rings  []RingStats
	Kernel []Counter // XDP_STATISTICS of the socket

	TxProven bool   // a transmitted frame has completed, so transmission is known to work
	RxProven bool   // a packet has arrived, so reception is known to work
	Stalled  bool   // the transmit ring does not advance although packets wait
	Stalls   uint64 // times that the transmit ring did not advance for 200 ms although packets waited
	Reopens  uint64 // times that the socket was closed and opened again because of a stall
}

// RingStats is the fill level of a ring.
type RingStats struct {
	Name string // fill, rx, tx or completion
	Used int    // slots in use
	Size int    // slots of the ring
}

// ConnStats sums up the connections of an adapter that are not closed.
type ConnStats struct {
	Connecting, Accepting, Established, Draining int // number of connections by state

	Window   float64 // sum of the congestion windows, in packets
	InFlight int     // packets in the network
	Credits  int     // messages that peers have promised to take
	Starved  int     // connections with a message that waits for the peer to post a receive
	Requests int     // outstanding requests
}

// KeyStats counts the connections that use one key of this host.
type KeyStats struct {
	Key         PublicKey // zero stands for shared secrets
	Connections int       // established connections, and those that drain
}

// keyStats returns the keys of the key file, without connections. s may be nil.
func (s *security) keyStats() (all []KeyStats) {
	if s == nil {
		return nil
	}
	for _, k := range s.store.Current().Keys.Public() {
		all = append(all, KeyStats{Key: PublicKey(k)})
	}
	return all
}

// countKey counts a connection in secure mode.
func (s *Stats) countKey(c *wire.ConnInfo) {
	if c.State != wire.Established && c.State != wire.Draining {
		return
	}
	i := slices.IndexFunc(s.Keys, func(k KeyStats) bool { return k.Key == c.OwnKey })
	if i < 0 {
		i = len(s.Keys)
		s.Keys = append(s.Keys, KeyStats{Key: c.OwnKey})
	}
	s.Keys[i].Connections++
}

// EVDStats sums up the dispatchers of one open of an adapter, the asynchronous one included.
type EVDStats struct {
	Count   int     // dispatchers
	Queued  int     // events queued in all dispatchers
	Longest int     // events queued in the dispatcher with the most events
	Fullest float64 // queued events of the fullest dispatcher divided by its queue length
}

// tallies has the counters of an adapter that the engines do not keep: triggers of CNOs, and goroutines that the CNOs
// released.
type tallies struct{ triggers, wakeups atomic.Uint64 }

// deviceStats has the counters of a device that are not in the statistics of its links.
type deviceStats struct {
	steering []Counter
	queues   []QueueStats
}

// Stats reads the counters. It stops each engine for a few microseconds to read the engine's counters, and again for
// every 32 connections of the engine. Between these reads the engine runs. Stats returns ErrInvalidHandle if the
// adapter is closed before or during the call.
func (ia *IA) Stats() (Stats, error) {
	dispatchers, err := ia.evdStats()
	if err != nil {
		return Stats{}, err
	}
	a := ia.a
	s := Stats{Keys: a.security.keyStats(), Dispatchers: dispatchers, Mode: a.currentMode(), Triggers: a.tallies.triggers.Load(), Wakeups: a.tallies.wakeups.Load(), Sleeps: a.engines.Parked()}
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
		err := d.eachConn(func(c *wire.ConnInfo) error {
			if s.ConnStats.add(c); a.security != nil {
				s.countKey(c)
			}
			return nil
		})
		if err != nil {
			return Stats{}, err
		}
	}
	s.ProtocolStats, s.Link = ProtocolStats(protocol.Counters), LinkStats(links)
	s.RoundTrip, s.Latency = Histogram(protocol.RoundTrip), Histogram(protocol.Latency)
	if a.readStats != nil {
		r := a.readStats()
		s.Steering, s.Queues = r.steering, r.queues
	}
	return s, nil
}

// add adds one connection.
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

// evdStats sums up the dispatchers. It returns an error if the adapter is closed.
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
