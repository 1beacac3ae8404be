package plan

import "time"

// Tunables, with unit and reason.
const (
	// RateDepth is operations. Measured on veth at 64 B: below 256 the sender runs dry between two
	// acknowledgements, above 1024 the buffers leave the cache.
	RateDepth = 512
	// rateDepthRead is operations; every read is answered by the peer's engine, one request each.
	rateDepthRead = 128
	// RateSignal is of how many requests one completes with an event. perftest has one of 100; on veth 4 to 32 make no
	// difference that can be told from noise, and 1 is 12 % slower at 64 B.
	RateSignal = 16
	// requestDepth is requests in flight: what a busy client of one server has.
	requestDepth = 32
	// bandwidthDepth is operations of 1 MiB; two fill the pipe, the rest hides the refill.
	bandwidthDepth = 8
	// defaultSize is bytes of a latency or rate operation: one cache line.
	defaultSize = 64
	// streamSize is bytes of a bandwidth operation.
	streamSize = 1 << 20
	// rawFrame is bytes of a small raw frame, headers included: the smallest Ethernet frame.
	rawFrame = 64
	// defaultDuration and defaultWarmup are per row: 24 rows of them take about 20 s.
	defaultDuration = 550 * time.Millisecond
	defaultWarmup   = 100 * time.Millisecond
	// ChurnSize is bytes of heap that the row of --full churns, and the most that a peer may ask for.
	ChurnSize = 1 << 30
	// churnTimes is how many times longer the row of --full is measured than others: while both collectors
	// have the two cores there are some hundred round trips a second.
	churnTimes = 5
	// ChurnLimit is how long the heap of a row may take to be there at both ends.
	ChurnLimit = 30 * time.Second
	// countLimit bounds a row that ends after a number of operations.
	countLimit = 10 * time.Minute
	// AutoInterval stands for intervals of a second in rows that are as long as longRow.
	AutoInterval = -1
	longRow      = 5 * time.Second
	// minInterval keeps the telling out of what is told.
	minInterval = 10 * time.Millisecond
	// maxRepeat bounds a job to what somebody may wait for.
	maxRepeat = 1000
	// Patience is how long a side waits beyond a row's own time for its peer.
	Patience = 5 * time.Second
	// sha256Limit is how long a transfer of any size may take before it counts as stuck.
	sha256Limit = 10 * time.Minute
	// sha256Bytes is what a sha256 row moves by default.
	sha256Bytes = 1 << 30
	// impairedSize is bytes of the latency rows beside those of an impairment: small, and one packet.
	impairedSize = 1 << 10
	// maxSeed bounds the seeds that are drawn: they are typed again by hand.
	maxSeed = 999_999
	// patientRows is how many times longer kernel TCP is measured under loss: it waits 0.2 s for each
	// lone packet that is lost, and moves few megabytes in the time of a row.
	patientRows = 5
	// MinLatencySamples is the least that gives a p99.9 a meaning.
	MinLatencySamples = 1000
	// OpenLimit bounds the opening and the closing of an end, and every change of a link: a queue may
	// be busy for a second after its last user.
	OpenLimit = 10 * time.Second
)
