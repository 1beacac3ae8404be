package ends

import "time"

// Tunables, with unit and reason.
const (
	// waitEvery is the time between two attempts at a server that another client has.
	waitEvery = 200 * time.Millisecond
	// jobGap is how long a target stays reserved for a job between two of its rows. In this time the job closes its
	// connection and opens another.
	jobGap = time.Second
	// refusalEvery is the minimum time between two log lines about refused requests.
	refusalEvery = time.Second
	// penaltyMin and penaltyMax limit the penalty: how long an address is refused after a failed row. A waiting client
	// makes an attempt every waitEvery. penaltyMin is longer than waitEvery, so that every other waiting client makes
	// at least one attempt during a penalty. penaltyMax is shorter than the default of --wait, so that a client with a
	// penalty is still waiting when its penalty ends.
	penaltyMin = 500 * time.Millisecond
	penaltyMax = 8 * time.Second
	// penaltyMemory is how long a penalty is remembered after its end. A penalty that begins in this time is twice as
	// long as the remembered one.
	penaltyMemory = time.Minute
	// maxPenalties limits the number of addresses with a current or remembered penalty.
	maxPenalties = 256
	// serverHeap is the size in bytes of the churned heap that a server grants to any client by default. It is small
	// because the kernel commits it immediately.
	serverHeap = 64 << 20
)
