package ends

import "time"

// Tunables, with unit and reason.
const (
	// waitEvery is the time between two attempts at a server that another client has.
	waitEvery = 200 * time.Millisecond
	// jobGap is how long a target stays reserved for a job between two of its rows. In this time the job closes one
	// connection and opens the next.
	jobGap = time.Second
	// refusalEvery is the minimum time between two log lines about refused requests.
	refusalEvery = time.Second
	// penaltyMin and penaltyMax bound how long an address is held back after a failed row. penaltyMin is above
	// waitEvery, so that every client that waits tries once in this time. penaltyMax is below the default of --wait.
	penaltyMin = 500 * time.Millisecond
	penaltyMax = 8 * time.Second
	// penaltyMemory is how long after its end a penalty counts for the next one.
	penaltyMemory = time.Minute
	// maxPenalties bounds the addresses that are held back or remembered.
	maxPenalties = 256
	// serverHeap is the churned heap in bytes that a server grants to any client by default. It is small because the
	// kernel commits it immediately.
	serverHeap = 64 << 20
)
