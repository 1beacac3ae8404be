package ends

import "time"

// Tunables, with unit and reason.
const (
	// waitEvery is how often a server that is taken is asked again.
	waitEvery = 200 * time.Millisecond
	// jobGap is how long a target stays a job's between two of its rows: closing one and opening the next.
	jobGap = time.Second
	// refusalEvery is the least time between two lines of log about requests that are refused.
	refusalEvery = time.Second
	// serverHeap is what a server churns for any client by default: it is committed at once.
	serverHeap = 64 << 20
)
