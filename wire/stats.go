package wire

import "reflect"

// Counters counts what an engine did. The values only grow.
type Counters struct {
	RxPackets  uint64 // protocol packets received
	TxPackets  uint64 // protocol packets sent, retransmissions included
	RxMessages uint64 // messages received completely
	TxRequests uint64 // sends, writes, reads and atomics that completed successfully
	RxBytes    uint64 // payload bytes received, retransmissions excluded
	TxBytes    uint64 // payload bytes sent, retransmissions excluded
	// Payload bytes sent without a copy, from memory of IA.Alloc, retransmissions included.
	InPlaceBytes  uint64
	Retransmits   uint64            // packets sent again
	RetransmitsBy [NumCauses]uint64 // packets sent again, by cause
	Timeouts      uint64            // retransmission timeouts
	AcksSent      uint64            // packets sent that carry only an acknowledgement
	Duplicates    uint64            // packets received more than once, or of an epoch that has ended
	// Packets held because an earlier packet was missing, or because a message found no receive.
	Early        uint64
	EarlyDropped uint64 // early packets dropped for lack of room
	BadPackets   uint64 // packets that are malformed, or of unknown version or type
	BadChecksum  uint64 // packets with a wrong CRC, or too short for one
	// Packets whose connection ID, verification tag and source address match no connection.
	UnknownConnection uint64
	// Packets with correct verification tag and source address, but with a PSN or acknowledgement that the peer cannot
	// have sent.
	Forged uint64
	// Packets of a secure connection that were opened before, or came too late to tell.
	Replayed uint64
	// Packets of a secure connection, and messages of handshakes, that do not authenticate.
	Unopened         uint64
	HandshakesDenied [NumDenials]uint64 // handshakes of requesters that a secure adapter refused
	// Connections and requests that ended because the file of peers does not permit them any more.
	Revoked          uint64
	Strays           uint64 // packets that arrived on a queue other than that of their connection
	StraysDropped    uint64 // stray packets dropped for lack of room
	ProtectionErrors uint64 // operations of peers refused: wrong key, range, privilege or zone
	// Protection errors because the word memory= of the peer in the file of peers does not permit the access.
	AccessDenied   uint64
	ProtocolErrors uint64 // packets of established connections that violated the protocol
	Backpressure   uint64 // times the transmit ring was full
	CreditStalls   uint64 // times a message had to wait for credit: for the peer to post a receive
	// Times a message of a peer found no receive on this side (RNR); the peer sends it again later.
	NotReadySent uint64
	// Times a message found no receive at the peer (RNR); it is sent again later.
	NotReadyReceived       uint64
	Overflows              uint64 // completions lost because an event dispatcher was full
	Connects               uint64 // connections established on the active side
	Accepts                uint64 // connections established on the passive side
	ConnRequestsRejected   uint64 // connection requests refused
	ConnRequestsChallenged uint64 // connection requests answered with a Challenge, to verify the address
	BlackHoles             uint64 // times a path stopped passing packets of the current size
	Resets                 uint64 // packets of unknown connections answered with Reset
	Broken                 uint64 // connections that broke
	// Reports that a packet did not arrive: ICMP destination unreachable, including forged reports, and neighbours that
	// do not answer.
	Unreachable uint64
	// Unreachable reports that quote no packet of a connection, because they are forged, late or truncated.
	UnreachableIgnored uint64
	// Connection requests ignored: their address had got its share of replies, too many were half-open, their address has
	// used wrong keys, or, in secure mode, too many handshakes waited or the requester has another request.
	ConnRequestsDropped uint64
	// Replies without a connection that were not sent, because replies to that address, to its network or of the engine
	// took too much time.
	RepliesPaused uint64
	Polls         uint64 // polls of an engine
	EmptyPolls    uint64 // polls of an engine in which no packet came or left
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
