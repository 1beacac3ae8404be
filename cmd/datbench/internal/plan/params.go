package plan

import "time"

// Tunables, with unit and reason.
const (
	// RateDepth is the number of outstanding operations of a rate row. On veth at 64 B, with fewer than 256 operations
	// the sender sometimes waits for an acknowledgement; with more than 1024 operations the buffers do not fit into the
	// CPU cache.
	RateDepth = 512
	// rateDepthRead replaces RateDepth for reads. It is smaller because the peer's engine answers each read separately.
	rateDepthRead = 128
	// RateSignal is the number of requests per completion event. perftest uses 100. On veth the values from 4 to 32
	// give equal results within the noise; the value 1 is 12 % slower at 64 B.
	RateSignal = 16
	// requestDepth is the number of requests that a request-response row has in flight, like a busy client.
	requestDepth = 32
	// bandwidthDepth is the number of outstanding operations of 1 MiB each. Two operations fill the link; the other six
	// keep it full while the next operation is being posted.
	bandwidthDepth = 8
	// defaultSize is the size in bytes of a latency or rate operation: one cache line.
	defaultSize = 64
	// streamSize is the size in bytes of a bandwidth operation.
	streamSize = 1 << 20
	// rawFrame is the size in bytes of a small raw frame: the smallest Ethernet frame, headers included.
	rawFrame = 64
	// defaultDuration and defaultWarmup apply to each row: 29 rows take about 21 s.
	defaultDuration = 550 * time.Millisecond
	defaultWarmup   = 100 * time.Millisecond
	// The option --full adds a row in which both ends have a large heap (--churn). ChurnSize is the size of that heap
	// in bytes. A peer may not request more.
	ChurnSize = 1 << 30
	// churnTimes is the factor by which the row with --churn takes longer than other rows. It needs more time, because
	// on two cores the garbage collectors of both ends leave time for only some hundred round trips per second.
	churnTimes = 5
	// ChurnLimit bounds the time to fill the heap of a row at both ends.
	ChurnLimit = 30 * time.Second
	// countLimit bounds the duration of a row that ends after a number of operations.
	countLimit = 10 * time.Minute
	// AutoInterval selects an interval of one second for rows that last at least longRow.
	AutoInterval = -1
	longRow      = 5 * time.Second
	// minInterval keeps the cost of progress reports out of the measurement.
	minInterval = 10 * time.Millisecond
	// maxRepeat limits the run time of a job to what a user may wait for.
	maxRepeat = 1000
	// PeerTimeout is how long a side waits for its peer beyond the time of the row.
	PeerTimeout = 5 * time.Second
	// sha256Limit bounds the duration of a sha256 row.
	sha256Limit = 10 * time.Minute
	// sha256Bytes is the number of bytes that a sha256 row transfers by default.
	sha256Bytes = 1 << 30
	// impairedSize is the size in bytes of the latency operations in impaired rows. Such an operation is one packet.
	impairedSize = 1 << 10
	// maxSeed limits the seeds that datbench chooses, so that they are easy to type.
	maxSeed = 999_999
	// tcpLossTimes multiplies the duration of kernel TCP rows with packet loss. If no packet follows a lost packet, TCP
	// sends the lost packet again only after 0.2 s. In the normal duration TCP transfers only a few megabytes.
	tcpLossTimes = 5
	// MinLatencySamples is the minimum number of samples for a p99.9.
	MinLatencySamples = 1000
	// OpenLimit limits the time to open or close an end, and to change a link. A queue may stay busy for a second after
	// its last user has closed it.
	OpenLimit = 10 * time.Second
)
