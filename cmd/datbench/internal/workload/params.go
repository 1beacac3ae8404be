package workload

import "time"

// Tunables, with unit and reason.
const (
	// churnPercent is the garbage, in percent of the heap, that starts the next collection (GOGC). Here a
	// collection of 1 GiB takes about a second. Producing the garbage for the next one takes about 0.1 s, so the collector
	// runs most of the time. With Go's default of 100 it would be idle most of the time.
	churnPercent = 2
	// churnBatch is the number of lists replaced between two pauses of churnPause. The pauses leave the cores to the
	// collector and to the measurement.
	churnBatch = 256
	churnPause = time.Millisecond
	// joinTime is the time that each connection adds to the limit for making all connections of a row.
	joinTime = 100 * time.Millisecond
	// KeepAlive is the silence after which a peer is probed, so that a dead peer is detected soon. A measuring peer is
	// never silent for so long. After another Silence without an answer the peer is given up.
	KeepAlive = 500 * time.Millisecond
	Silence   = 3 * time.Second
	// clientSilence is the time after which the server drops a client that is alive but sends nothing in the middle of
	// a row.
	clientSilence = 5 * time.Second
	// ConnectTimeout is how long the initiator waits for an absent peer.
	ConnectTimeout = 3 * time.Second
)
