package fairqueue

import "time"

// Tunables.
const (
	// NetworkShare limits a network: it gets another buffer only while it holds fewer than NetworkShare × the number of
	// free buffers. Of 64 buffers a network may hold 57, so some are left for other networks. Of 8 buffers or fewer, a
	// network may hold all.
	NetworkShare = 8
	// ProgressTimeout is how long an unfinished message may hold a buffer without progress while other flows wait for a
	// buffer. After an outage of 500 ms, a sender tries again within 300 ms, so a message may pause for 800 ms.
	ProgressTimeout = 900 * time.Millisecond
	// MinRate is the rate in bytes per second that counts as progress. It is low, because a slow path is not an attack.
	MinRate = 1 << 20
	// PushOutWait limits how long a peer that holds no buffer waits while no flow is served. After this time a message
	// that makes progress, but has held its buffer for ProgressTimeout, ends for this peer. With 16 buffers, a message
	// has 4 s: 40 MB at 10 MB/s.
	PushOutWait = 250 * time.Millisecond
	// SlowMessage is the limit for slow messages. A peer counts as slow if one of its unfinished messages has held a
	// buffer for SlowMessage without progress while other flows waited, or was pushed out. The peer then counts as slow
	// for SlowTime.
	// MaxSlow bounds the number of addresses and networks that are remembered as slow.
	SlowMessage = 100 * time.Millisecond
	SlowTime    = 10 * time.Second
	MaxSlow     = 1024
	// ProvenTime is how long a peer must go without a slow message (see SlowMessage) to become a proven peer. A slow
	// message makes it an unproven peer again. So an attacker can send one slow message as a proven peer in each
	// ProvenTime.
	ProvenTime = time.Minute
	// ProvenTurns is the number of consecutive turns that proven peers get while unproven peers wait. Then an unproven
	// peer gets a turn.
	ProvenTurns = 8
)
