package workload

import "time"

// Tunables, with unit and reason.
const (
	// churnPercent is the garbage, in percent of the heap, that makes the collector begin again. Of 1 GiB a
	// cycle takes about a second here, and the garbage for the next a tenth of it; at Go's own 100 the
	// collector would rest most of the time.
	churnPercent = 2
	// churnBatch is lists of objects that are replaced between two pauses of churnPause, which leave the
	// cores to the collector and to what is measured.
	churnBatch = 256
	churnPause = time.Millisecond
	// joinTime is what each connection of a row adds to the time in which all have to be there.
	joinTime = 100 * time.Millisecond
	// KeepAlive is after what silence a peer is probed: one that is dead is known soon after. A peer that measures is
	// never silent for so long. silence is after which more it is given up, if nothing tells of its death.
	KeepAlive = 500 * time.Millisecond
	Silence   = 3 * time.Second
	// stopped is after what time a client is dropped that is alive and sends nothing in the middle of a row.
	stopped = 5 * time.Second
	// ConnectTimeout is how long an absent peer is waited for.
	ConnectTimeout = 3 * time.Second
)
