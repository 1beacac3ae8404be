package wire

import "reflect"

// Counters counts what an engine did. The values only grow.
type Counters struct {
	RxPackets, TxPackets   uint64
	RxMessages             uint64 // messages received in full
	TxRequests             uint64 // sends, writes, reads and atomics completed successfully
	RxBytes, TxBytes       uint64 // payload placed and payload sent, without retransmissions
	InPlaceBytes           uint64 // payload sent from link memory without a copy, retransmissions included
	Retransmits            uint64 // packets sent again
	RetransmitsBy          [NumCauses]uint64
	Timeouts               uint64             // retransmission timeouts
	AcksSent               uint64             // packets that carry nothing but an acknowledgement
	Duplicates             uint64             // packets received again, or of an old epoch
	Early                  uint64             // packets held because an earlier one was missing, or a message found no receive
	EarlyDropped           uint64             // early packets dropped for lack of room
	BadPackets             uint64             // malformed, or of an unknown version or type
	BadChecksum            uint64             // packets with a wrong CRC, or too short for one
	UnknownConnection      uint64             // packets whose connection ID is unknown, or whose tag or address is not the peer's
	Forged                 uint64             // packets with the peer's tag and address, but impossible numbers
	Replayed               uint64             // packets of a secure connection that were opened before, or are below its replay window
	Unopened               uint64             // packets of a secure connection, and messages of handshakes, that do not authenticate or have no key
	HandshakesDenied       [NumDenials]uint64 // handshakes of requesters refused
	Revoked                uint64             // connections and requests ended by CheckGrants
	Strays                 uint64             // packets for a connection of another engine
	StraysDropped          uint64             // strays dropped because that engine's ring was full
	ProtectionErrors       uint64             // remote accesses denied
	AccessDenied           uint64             // of these, accesses that the Grant of the peer does not permit, whatever the key is
	ProtocolErrors         uint64             // packets of a connection that violated the protocol
	Backpressure           uint64             // times the link had no transmit frame
	CreditStalls           uint64             // times a message waited for credit or a receive of the peer
	NotReadySent           uint64             // times a peer's message found no receive here
	NotReadyReceived       uint64             // times a message found no receive at the peer
	Overflows              uint64             // completions lost because their queue was full
	Connects, Accepts      uint64             // connections established, active and passive
	ConnRequestsRejected   uint64             // connection requests rejected
	ConnRequestsChallenged uint64             // connection requests answered with a Challenge
	BlackHoles             uint64             // times a path stopped passing packets of the current size
	Resets                 uint64             // Reset packets sent for unknown connections
	Broken                 uint64             // connections that broke
	Unreachable            uint64             // ICMP reports that a peer's UDP port is closed
	UnreachableIgnored     uint64             // of these, reports that quote no packet of a connection
	ConnRequestsDropped    uint64             // connection requests dropped: no token for a reply, too many half-open, a blocked address, or no room for the handshake
	RepliesPaused          uint64             // replies without a connection not sent, because replies to that address took too long
	Polls, EmptyPolls      uint64             // all polls, and those in which no packet came or left
}

// Stats are the counters and the latencies of an engine.
type Stats struct {
	Counters
	// RoundTrip is the time from sending a packet to its acknowledgement, without the peer's acknowledgement delay.
	// Each packet that acknowledges something new gives one sample.
	RoundTrip Histogram
	// Latency is the time from the Poll that sent the first packet of a request to the Poll that completed it. It
	// includes the round trip, the peer's work and retransmissions. It excludes the wait for credit or for the window
	// before the first packet. Binds send nothing and are not counted.
	Latency Histogram
}

// Cause says why a packet was sent again.
type Cause uint8

// Causes of retransmissions.
const (
	CauseLoss      Cause = iota // later packets arrived and it did not
	CauseTailProbe              // tail loss probe
	CauseTimeout                // retransmission timeout
	CauseNotReady               // receiver not ready
	CauseEvicted                // reneging: the peer held the packet as early and dropped it
	// CauseBlackHole: the path stopped passing packets of the current size. All outstanding data is cut into smaller
	// packets and sent again (see epochChange). This includes the data of early packets that the peer has acknowledged
	// selectively, because the peer drops its early packets at an epoch change. RetransmitsBy counts the large packets,
	// not the small ones.
	CauseBlackHole
	NumCauses
)

var causeNames = [NumCauses]string{"loss", "tail_probe", "timeout", "not_ready", "evicted", "black_hole"}

// String returns one word, the label in metrics.
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

// Stats returns a copy of the engine's counters.
func (e *Engine) Stats() Stats {
	e.mustOwn()
	return e.stats
}

// Add adds the counters of another engine to s.
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
