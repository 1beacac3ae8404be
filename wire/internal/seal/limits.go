package seal

import "time"

// Limits say how long a key is used.
type Limits struct {
	// Packets is the largest number of packets that are sealed with a key.
	Packets uint64
	// Update is the number of packets, sealed or opened, after which the end that leads starts a key update.
	Update uint64
	// Age is the age of a key at which the end that leads starts a key update.
	Age time.Duration
	// Failures is the number of packets that do not authenticate after which nothing is opened any more.
	Failures uint64
}

// Limits of AES-128-GCM (RFC 9001 §6.6 and appendix B.1): shorter packets have fewer blocks, so more of them may have
// the same key.
const (
	shortPacket  = 2048    // bytes
	shortPackets = 1 << 28 // sealed packets of at most shortPacket bytes
	longPackets  = 1 << 23 // sealed packets of at most 64 KiB
	maxFailures  = 1 << 52
	maxAge       = time.Hour
)

// LimitsFor returns the limits for packets of at most the given size in bytes. A key update begins when 15/16 of the
// packets are used; the rest is for the time until the peer follows.
func LimitsFor(maxPacket int) Limits {
	n := uint64(longPackets)
	if maxPacket <= shortPacket {
		n = shortPackets
	}
	return Limits{Packets: n, Update: n - n/16, Age: maxAge, Failures: maxFailures}
}
