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
	// serverHeap is the churned heap in bytes that a server grants to any client by default. It is small because the
	// kernel commits it at once.
	serverHeap = 64 << 20
)
