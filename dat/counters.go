package dat

import (
	"time"

	"github.com/datxdp/datxdp/wire"
)

// ProtocolStats count what the protocol did. All only grow.
type ProtocolStats struct {
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

// LinkStats count what the links moved: packets as the protocol sees them, and their bytes. All only grow.
type LinkStats struct {
	RxPackets, RxBytes uint64
	TxPackets, TxBytes uint64
	// RxDropped counts packets that arrived and were lost: no free frame, ring full.
	RxDropped uint64
	// RxInvalid counts packets that arrived and were not well formed, or came from where no host can be: our own
	// address, a group, the loopback or no address.
	RxInvalid uint64
	// TxDropped counts packets that were accepted by Send and never left. Those that were lost after the device
	// had taken them are in TxPackets too.
	TxDropped uint64
	// TxFull counts those of TxDropped for which the kernel's send buffer was full, over kernel UDP.
	TxFull uint64
	// TxKicks counts system calls that drove transmission; Wakeups counts returns from Wait that
	// had slept.
	TxKicks, Wakeups uint64
}

// Cause says why a packet was sent again; ProtocolStats.RetransmitsBy is indexed by it.
type Cause uint8

// Causes of retransmissions.
const (
	CauseLoss      Cause = 0 // packets sent later arrived
	CauseTailProbe Cause = 1 // no acknowledgement in time: the newest packet goes again
	CauseTimeout   Cause = 2 // none still: everything goes again
	CauseNotReady  Cause = 3 // the peer had no receive for it
	CauseEvicted   Cause = 4 // the peer held it early and had to let go of it
	CauseBlackHole Cause = 5 // the path stopped passing packets of its size
	NumCauses            = 6
)

var causeNames = [NumCauses]string{"loss", "tail_probe", "timeout", "not_ready", "evicted", "black_hole"}

// String is one word, as in metrics.
func (c Cause) String() string {
	name := ""
	if c < NumCauses {
		name = causeNames[c]
	}
	return enumName(name, "Cause", c)
}

// HistogramBuckets is the number of buckets of a Histogram.
const HistogramBuckets = 46

// Histogram counts durations. There are two buckets an octave, from a microsecond to four seconds; the last has no bound.
type Histogram struct {
	Buckets [HistogramBuckets]uint64
	Sum     uint64 // nanoseconds
}

// Bound is what every duration in bucket i is shorter than, i being an index of Buckets. The last bucket has
// none: it is math.MaxInt64, as for any index above. Below 0 it is 0.
func (h *Histogram) Bound(i int) time.Duration { return (*wire.Histogram)(h).Bound(i) }
