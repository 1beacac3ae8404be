package workload

import "time"

// Tunables, with unit and reason.
const (
	// churnPercent is the amount of garbage, in percent of the heap, at which the next collection starts (GOGC). With
	// 2, the collector runs most of the time: a collection of 1 GiB takes about 1 s, and producing 2 % garbage about
	// 0.1 s. With Go's default of 100 the collector would be idle most of the time.
	churnPercent = 2
	// churnBatch is the number of lists that are replaced between two pauses of churnPause. During the pauses the
	// collector and the measurement have the cores.
	churnBatch = 256
	churnPause = time.Millisecond
	// joinTime is the time that each connection adds to the limit for making all connections of a row.
	joinTime = 100 * time.Millisecond
	// KeepAlive is the silence after which a peer is probed, to detect a dead peer soon. A peer that measures is never
	// silent for so long. If the probe is not answered within Silence, the peer is given up.
	KeepAlive = 500 * time.Millisecond
	Silence   = 3 * time.Second
	// clientSilence is the time after which the server drops a client that is alive but sends nothing during its row.
	clientSilence = 5 * time.Second
	// ConnectTimeout is how long the initiator waits for an absent peer.
	ConnectTimeout = 3 * time.Second
)
