package wire

import "reflect"

// Counters count what an engine did. All only grow.
type Counters struct {
	RxPackets, TxPackets   uint64
	RxMessages             uint64 // messages received whole
	TxRequests             uint64 // sends, writes, reads and atomics completed successfully
	RxBytes, TxBytes       uint64 // payload of operations placed and sent, repeats excluded
	InPlaceBytes           uint64 // payload sent from memory of the link without a copy, repeats included
	Retransmits            uint64 // packets sent again
	RetransmitsBy          [NumCauses]uint64
	Timeouts               uint64 // retransmission timeouts
	AcksSent               uint64 // packets that only acknowledge
	Duplicates             uint64 // packets that had arrived before
	Early                  uint64 // packets held because an earlier one was missing
	EarlyDropped           uint64 // early packets for which there was no room
	BadPackets             uint64 // too short, unknown version or type
	BadChecksum            uint64
	UnknownConnection      uint64 // packets that name no connection, or have another tag or address than its peer
	Forged                 uint64 // packets of a connection, tag and address right, whose numbers its peer cannot have sent
	Strays                 uint64 // packets for another engine's connection
	StraysDropped          uint64
	ProtectionErrors       uint64 // remote accesses refused
	ProtocolErrors         uint64 // packets of an established connection that made no sense
	Backpressure           uint64 // times the transmit ring was full
	CreditStalls           uint64 // times a message waited for a receive at the peer
	NotReadySent           uint64 // times a message of a peer found no receive here
	NotReadyReceived       uint64 // times a message found no receive at the peer
	Overflows              uint64 // completions lost in a full queue
	Connects, Accepts      uint64 // connections established, active and passive
	ConnRequestsRejected   uint64 // connection requests refused
	ConnRequestsChallenged uint64 // connection requests asked to prove their address
	BlackHoles             uint64 // times a path stopped passing packets of the size in use
	Resets                 uint64 // packets of unknown connections answered
	Broken                 uint64 // connections that broke
	Unreachable            uint64 // reports that nothing listens at a peer's port
	UnreachableIgnored     uint64 // and those that quote no packet of a connection
	ConnRequestsDropped    uint64 // connection requests ignored because too many were half-open
	Polls, EmptyPolls      uint64 // all, and those in which no packet came or left
}

// Stats are the counters and the latencies of an engine.
type Stats struct {
	Counters
	// RoundTrip is the time from sending a packet to its acknowledgement, less what the peer kept it:
	// one sample for each packet that acknowledges something new.
	RoundTrip Histogram
	// Latency is the time from the Poll in which the first packet of a request left to the Poll in which
	// the request completed successfully: a round trip, the peer's work, and every repeat. What a request
	// waits before for credit or for the window is not in it. Binds, of which nothing leaves, are not counted.
	Latency Histogram
}

// Cause says why a packet was sent again.
type Cause uint8

// Causes of retransmissions.
const (
	CauseLoss      Cause = iota // packets sent later arrived
	CauseTailProbe              // no acknowledgement in time: the newest packet goes again
	CauseTimeout                // none still: everything goes again
	CauseNotReady               // the peer had no receive for it
	CauseEvicted                // the peer held it early and has dropped it
	// CauseBlackHole: the path stopped passing packets of its size. All that is outstanding is cut anew and
	// sent again, also what had arrived early, since the peer drops that. The packets of the old cut are counted.
	CauseBlackHole
	NumCauses
)

var causeNames = [NumCauses]string{"loss", "tail_probe", "timeout", "not_ready", "evicted", "black_hole"}

// String is one word, as in metrics.
func (c Cause) String() string {
	if c < NumCauses {
		return causeNames[c]
	}
	return "?"
}

// countRetransmits counts packets that were sent again.
func (s *Stats) countRetransmits(n int, why Cause) {
	s.Retransmits += uint64(n)
	s.RetransmitsBy[why] += uint64(n)
}

// Stats is a copy of the engine's counters.
func (e *Engine) Stats() Stats {
	e.mustOwn()
	return e.stats
}

// Add adds the counters of another engine.
func (s *Stats) Add(o Stats) { addCounters(reflect.ValueOf(s).Elem(), reflect.ValueOf(&o).Elem()) }

// addCounters adds every number in o to its counterpart in sum.
func addCounters(sum, o reflect.Value) {
	switch sum.Kind() {
	case reflect.Struct:
		for i := range sum.NumField() {
			addCounters(sum.Field(i), o.Field(i))
		}
	case reflect.Array:
		for i := range sum.Len() {
			addCounters(sum.Index(i), o.Index(i))
		}
	default:
		sum.SetUint(sum.Uint() + o.Uint())
	}
}
