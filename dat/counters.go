package dat

import (
	"time"

	"github.com/datxdp/datxdp/wire"
)

// ProtocolStats are the counters of the protocol. They never decrease.
type ProtocolStats struct {
	RxPackets, TxPackets   uint64
	RxMessages             uint64            // messages received completely
	TxRequests             uint64            // sends, writes, reads and atomics that completed successfully
	RxBytes, TxBytes       uint64            // payload bytes placed in memory and sent, retransmissions excluded
	InPlaceBytes           uint64            // payload bytes sent without a copy from memory of IA.Alloc, retransmissions included
	Retransmits            uint64            // packets sent again
	RetransmitsBy          [NumCauses]uint64 // Retransmits by Cause
	Timeouts               uint64            // retransmission timeouts
	AcksSent               uint64            // packets that carry only an acknowledgement
	Duplicates             uint64            // packets received more than once
	Early                  uint64            // packets held because an earlier one was missing
	EarlyDropped           uint64            // early packets dropped for lack of room
	BadPackets             uint64            // packets too short, or of unknown version or type
	BadChecksum            uint64            // packets with a wrong CRC
	UnknownConnection      uint64            // packets of no connection, or with another verification tag or source address than the peer's
	Forged                 uint64            // packets with the right tag and address but an impossible PSN or acknowledgement
	Strays                 uint64            // packets that arrived on another queue than their connection's
	StraysDropped          uint64            // stray packets dropped for lack of room
	ProtectionErrors       uint64            // remote accesses refused
	ProtocolErrors         uint64            // packets of established connections that violated the protocol
	Backpressure           uint64            // times the transmit ring was full
	CreditStalls           uint64            // times a message began to wait for the peer to post a receive
	NotReadySent           uint64            // times a message of a peer found no receive here (RNR)
	NotReadyReceived       uint64            // times a message found no receive at the peer (RNR)
	Overflows              uint64            // completions lost because an event dispatcher was full
	Connects, Accepts      uint64            // connections established on the active and on the passive side
	ConnRequestsRejected   uint64            // connection requests refused
	ConnRequestsChallenged uint64            // connection requests asked to prove their address
	BlackHoles             uint64            // times a path stopped passing packets of the current size
	Resets                 uint64            // packets of unknown connections answered with Reset
	Broken                 uint64            // connections that broke
	Unreachable            uint64            // ICMP reports that nothing listens at a peer's port
	UnreachableIgnored     uint64            // such reports that quote no packet of a connection, included in Unreachable
	ConnRequestsDropped    uint64            // connection requests ignored because too many were half-open
	Polls, EmptyPolls      uint64            // all polls of an engine, and those in which no packet came or left
}

// LinkStats are the counters of the links: packets of this protocol and their bytes. They never decrease.
type LinkStats struct {
	RxPackets, RxBytes uint64
	TxPackets, TxBytes uint64
	// RxDropped counts packets that arrived and were dropped: no frame was free, or a ring was full.
	RxDropped uint64
	// RxInvalid counts packets that arrived malformed or with an impossible source address: this host's own, a
	// multicast, loopback or unspecified address.
	RxInvalid uint64
	// TxDropped counts packets that Send accepted and that did not leave. A packet lost after the device had taken it
	// counts in TxPackets too.
	TxDropped uint64
	// TxFull counts the packets, included in TxDropped, that found the kernel's send buffer full. It is used over
	// kernel UDP only.
	TxFull uint64
	// TxKicks counts system calls that start transmission. Wakeups counts the calls of Wait that slept.
	TxKicks, Wakeups uint64
}

// Cause is the reason of a retransmission. It is the index of ProtocolStats.RetransmitsBy.
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

// HistogramBuckets is the number of buckets of a Histogram.
const HistogramBuckets = 46

// Histogram counts durations in buckets: two for each power of two, from 1 µs to 4 s. The last bucket has no upper
// bound.
type Histogram struct {
	Buckets [HistogramBuckets]uint64
	Sum     uint64 // of all durations, in nanoseconds
}

// Bound returns the upper bound of bucket i: every duration in it is shorter. It is math.MaxInt64 for the last bucket
// and above, and 0 for i below 0.
func (h *Histogram) Bound(i int) time.Duration { return (*wire.Histogram)(h).Bound(i) }
