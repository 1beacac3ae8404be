package dat

import (
	"time"

	"github.com/datxdp/datxdp/wire"
)

// ProtocolStats are the counters of the protocol. They never decrease.
type ProtocolStats struct {
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

// LinkStats are the counters of the links: packets of this protocol and their bytes. They never decrease.
type LinkStats struct {
	RxPackets, RxBytes uint64
	TxPackets, TxBytes uint64
	// RxDropped counts packets that arrived and were dropped: no frame was free, or a ring was full.
	RxDropped uint64
	// RxInvalid counts packets that were malformed or had an impossible source address: an address of this host, or a
	// multicast, loopback or unspecified address.
	RxInvalid uint64
	// TxDropped counts packets that the link's method Send accepted but that were not transmitted. If the device had
	// already taken such a packet, TxPackets counts the packet too.
	TxDropped uint64
	// TxFull counts those packets of TxDropped that were lost because the kernel's send buffer was full. Only links
	// over kernel UDP use TxFull.
	TxFull uint64
	// RxGroups counts the groups of packets that the kernel passed on as one message (UDP_GRO). TxGroups counts the
	// groups that the kernel took as one message (UDP_SEGMENT). Only links over kernel UDP use them.
	RxGroups, TxGroups uint64
	// TxKicks counts system calls that start transmission. Wakeups counts the calls of the link's method Wait that
	// slept.
	TxKicks, Wakeups uint64
}

// Cause is the reason of a retransmission, and the index into ProtocolStats.RetransmitsBy.
type Cause uint8

// Causes of retransmissions.
const (
	CauseLoss      Cause = 0 // packets sent later were acknowledged
	CauseTailProbe Cause = 1 // no acknowledgement within the probe timeout: a tail loss probe (RFC 8985 §7)
	CauseTimeout   Cause = 2 // retransmission timeout: every unacknowledged packet is sent again
	CauseNotReady  Cause = 3 // the peer had no receive for the packet (RNR)
	CauseEvicted   Cause = 4 // the peer dropped the early packet that it held (reneging)
	CauseBlackHole Cause = 5 // the path stopped passing packets of this size (black hole)
	NumCauses            = 6
)

var causeNames = [NumCauses]string{"loss", "tail_probe", "timeout", "not_ready", "evicted", "black_hole"}

// String returns one word, the same as in metrics.
func (c Cause) String() string {
	name := ""
	if c < NumCauses {
		name = causeNames[c]
	}
	return enumName(name, "Cause", c)
}

// Denial is the reason why the handshake of a requester was refused, and the index into ProtocolStats.HandshakesDenied.
type Denial uint8

// Reasons of refused handshakes. The requester gets no answer, and EventTimedOut with BreakHandshake follows there.
// With DeniedService it gets EventNonPeerRejected with BreakNoListener, and with DeniedLimit because of connections= or
// bytes= it gets EventNonPeerRejected with BreakResources.
const (
	DeniedKey     Denial = 0 // this host does not have the key, or the requester does not know it
	DeniedUnknown Denial = 1 // the file of peers does not have the requester's key
	DeniedExpired Denial = 2 // the word expires= of the requester
	DeniedAddress Denial = 3 // the word from= of the requester
	DeniedService Denial = 4 // the word services= of the requester
	DeniedBusy    Denial = 5 // too many handshakes waited for their computation; the requester tries again
	DeniedLimit   Denial = 6 // a limit of the requester: connections=, half-open=, rate= or bytes=
	NumDenials           = 7
)

// String returns one word, the same as in metrics.
func (d Denial) String() string {
	name := ""
	if d < NumDenials {
		name = wire.Denial(d).String()
	}
	return enumName(name, "Denial", d)
}

// HistogramBuckets is the number of buckets of a Histogram.
const HistogramBuckets = 46

// Histogram counts durations in buckets: two for each power of two, from 1 µs to 4 s. The last bucket has no upper
// bound.
type Histogram struct {
	Buckets [HistogramBuckets]uint64
	Sum     uint64 // of all durations, in nanoseconds
}

// Bound returns the upper bound of bucket i: every duration in the bucket is shorter. For the last bucket, and for i
// above it, Bound returns math.MaxInt64. For i below 0 it returns 0.
func (h *Histogram) Bound(i int) time.Duration { return (*wire.Histogram)(h).Bound(i) }
