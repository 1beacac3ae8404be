package fairqueue

import "time"

// Tunables.
const (
	// NetworkShare is how many times the free buffers a network may hold: 56 of 64, so that some are left for peers of other
	// networks. Of up to 8 buffers, the peers of one network may hold all.
	NetworkShare = 8
	// ProgressTimeout is how long an unfinished message may make no progress while others wait for the buffer that it holds.
	// After an outage of 500 ms a sender tries again within 300 ms. MinRate in bytes per second is the rate that counts as
	// progress: a slow path is not an attack.
	ProgressTimeout = 900 * time.Millisecond
	MinRate         = 1 << 20
	// SlowMessage is how much of the timeout a message may use up before its peer is slow for SlowTime. MaxSlow bounds the
	// peers and networks that are remembered.
	SlowMessage = 100 * time.Millisecond
	SlowTime    = 10 * time.Second
	MaxSlow     = 1024
)
