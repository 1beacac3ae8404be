package ends

import "time"

// Tunables, with unit and reason.
const (
	// waitEvery is the time between two attempts at a server that another client has.
	waitEvery = 200 * time.Millisecond
	// jobGap is how long a target stays reserved for a job between two of its rows. In this time the job closes its
	// connection and opens another.
	jobGap = time.Second
	// yieldTime is how long the address that had the target last waits after a client of another address was refused.
	// It is longer than waitEvery, so that the refused client makes an attempt first.
	yieldTime = 500 * time.Millisecond
	// refusalEvery is the minimum time between two log lines about refused requests.
	refusalEvery = time.Second
	// penaltyMin and penaltyMax limit a penalty: the time for which requests from an address are refused after a row of
	// this address failed. A waiting client makes an attempt every waitEvery. penaltyMin is longer than waitEvery, so
	// that each of the other waiting clients makes at least one attempt during a penalty. penaltyMax is shorter than
	// the default of --wait, so that a client with a penalty is still waiting when its penalty ends.
	penaltyMin = 500 * time.Millisecond
	penaltyMax = 8 * time.Second
	// penaltyMemory is how long a penalty is remembered after its end. A penalty that begins in this time is twice as
	// long as the remembered penalty.
	penaltyMemory = time.Minute
	// maxPenalties limits the number of addresses with a current or remembered penalty.
	maxPenalties = 256
	// serverHeap is the default limit in bytes of the heap that a server makes for a client's row with --churn. The
	// limit is small because the kernel commits the pages of the heap immediately.
	serverHeap = 64 << 20
	// serverBusy is the default limit of the busy loops that a server runs for a client's row. They load a host of 8
	// cores twice.
	serverBusy = 16
)
