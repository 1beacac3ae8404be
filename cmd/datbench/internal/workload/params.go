package workload

import "time"

// Tunables, with unit and reason.
const (
	// churnPercent is the amount of garbage, in percent of the heap, at which the next collection starts (GOGC). With
	// 2, the collector runs most of the time: a collection of 1 GiB takes about 1 s, and the program takes about 0.1 s
	// to produce 2 % of garbage. With Go's default of 100 the collector would be idle most of the time.
	churnPercent = 2
	// A row with --churn has a goroutine that continuously replaces lists of objects in a heap. churnBatch is the
	// number of lists that the goroutine replaces before it sleeps for churnPause. During this pause the garbage
	// collector and the measurement can use the cores.
	churnBatch = 256
	churnPause = time.Millisecond
	// KeepAlive is how long a peer may be silent before it is probed, so that a dead peer is detected soon. A peer that
	// measures is never silent for so long. Silence is how long the peer may leave the probe unanswered before its
	// connections break.
	KeepAlive = 500 * time.Millisecond
	Silence   = 3 * time.Second
	// peerSilence is the time after which a side gives up a peer that is alive but sends nothing during its row.
	peerSilence = 5 * time.Second
	// ConnectTimeout is how long the initiator waits for an absent peer.
	ConnectTimeout = 3 * time.Second
)
