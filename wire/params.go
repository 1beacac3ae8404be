package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/congestion"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Tunables of the protocol. Times are those of the sender's clock. Counts are packets unless the comment names another
// unit.
const (
	// maxWindow bounds the packets in flight on a connection.
	maxWindow = congestion.MaxWindow
	// minPacket is the smallest MTU that a peer may have: the largest handshake packet.
	minPacket = proto.HeaderSize + proto.MaxHelloSize + proto.TrailerSize
	// minPeerWindow is the smallest receive window that a peer may have.
	minPeerWindow = 32
	// blackHoleTries is the number of timeouts in a row, each after an answer to a short packet, after which a large packet
	// counts as lost for its size (black hole).
	blackHoleTries = 4

	// nagleThreshold is the number of outstanding requests up to which a connection may send each one in a packet of
	// its own. With more, Nagle's algorithm lets small operations share packets: in copy-mode AF_XDP a packet costs as
	// much as some twenty packed messages, from post to completion.
	nagleThreshold = 4
	// tokenTime is the idle time that refills the token of one partial packet, and bucketSize the number of tokens in a
	// full bucket. A post refills postTokens, so 32 posts refill a token. With 16 to 128 posts a token the rates differ
	// by less than the noise; with 1, each message has its own packet (decision 0005). At least 1/busyShare of any time
	// counts as idle, so that partial packets also leave when the sender is busy with received packets.
	postTokens = 64 * time.Nanosecond
	tokenTime  = 32 * postTokens
	bucketSize = 64
	busyShare  = 128
	// pausePolls is the number of consecutive polls without a post that fills the bucket. It exceeds the polls that a
	// consumer makes between two posts to take its completions.
	pausePolls = 8
	// postTime and packetTime are what a post and a packet take on a slow host. Time beyond them counts as idle.
	postTime   = time.Microsecond
	packetTime = 8 * time.Microsecond
	// A post is deferred if at least minLeft completions wait for the consumer, but at most maxDeferred posts in a row
	// are deferred. 64-byte messages a second on one connection, by maxDeferred: 0: 3.0 M, 32: 3.8 M, 64: 4.4 M, 256:
	// 4.2 M (dat: BenchmarkStreamSend64).
	minLeft     = 8
	maxDeferred = 64
	// zeroCopyBlocks is the least number of blocks of link memory that is sent without a copy. Sending without a copy
	// adds one or two segments to a packet, and in copy-mode AF_XDP a segment costs the kernel as much as copying some
	// 10 KiB costs us. With fewer blocks, writes of 1 MiB at an MTU of 9000 would be 25 % slower (dat:
	// BenchmarkWrite1M).
	zeroCopyBlocks = 8
	// smallOp is the largest operation in bytes that is never divided between two packets.
	smallOp = 256

	// ackEvery is the number of packets after which a receiver acknowledges unasked.
	ackEvery = 32
	// ackDelay bounds the delay of an acknowledgement that the peer did not ask for.
	ackDelay = 100 * time.Microsecond

	// minRTO is the shortest timeout after which all packets are sent again, maxRTO the bound of its back-off (RFC 6298
	// §5.5 to §5.7). Within maxRTO a peer has to read what all connections of a host retransmit at once: with 25 ms,
	// 4000 connections send 160,000 packets/s, and a process that was stopped for 1 s never caught up.
	minRTO = 500 * time.Microsecond
	maxRTO = time.Second
	// busyRTO is the bound of the back-off while any peer's packets arrive at the engine, since the path works then. A
	// longer back-off starves connections where many share a short queue: with 500 ms, some of 40 connections that
	// share a queue of 12 packets send nothing for 2 s.
	busyRTO = 300 * time.Millisecond
	// suspendTime is how late a Poll has to be to count as the end of a suspension. catchUp bounds the time in which
	// the engine then reads waiting packets before it runs timers.
	suspendTime = 100 * time.Millisecond
	catchUp     = 100 * time.Millisecond
	// resumeAckBatch is the number of connections that get an Ack every resumeAckEvery after a suspension.
	resumeAckBatch = 32
	resumeAckEvery = time.Millisecond
	// resumeAckPause is the least time between two such rounds of Acks if no timer was due at the late Poll.
	resumeAckPause = time.Second

	// evictTries is the number of connections that are tried for an early packet to drop.
	evictTries = 8

	// maxReceive and maxTransmit bound the frames that one Poll receives and hands to the link at a time.
	maxReceive  = 64
	maxTransmit = 64
	// maxTimers bounds the timers that one Poll runs, so that thousands of connections whose timers fire together do
	// not delay others, nor a call that polls the engine: a timer that sends a packet costs about 8 us. With 64,
	// accepting a request took 1 ms beside 2000 abandoned connections a second.
	maxTimers = 8
	// maxBurst is the number of packets that a connection may send in its turn.
	maxBurst = 32

	// helloRetry is the time to the first repeat of Connect or Accept; it doubles up to helloRetryMax. acceptTries
	// bounds the repeats of Accept by the timer. An Accept that answers a repeated Connect does not count.
	helloRetry    = 5 * time.Millisecond
	helloRetryMax = 100 * time.Millisecond
	acceptTries   = 3
	// closeTries is the number of Close packets that are sent to a silent peer. closeRetry is the time to the first
	// repeat.
	closeTries = 8
	closeRetry = 5 * time.Millisecond
	// promptChallenges is the number of Challenges of one connection attempt that this side answers with an immediate
	// Connect. After that number, a Challenge only replaces the cookie, and the timer sends the next Connect. So a peer
	// cannot make this side send Connects at the rate of its Challenges.
	promptChallenges = 3
	// rnrDelayMin is the first wait of the RNR timer; it doubles up to rnrDelayMax.
	rnrDelayMin = 200 * time.Microsecond
	rnrDelayMax = 50 * time.Millisecond
	// maxCredit bounds the credit of a peer beyond the messages sent, so that message numbers stay comparable.
	maxCredit = 1 << 30
	// keepAliveProbes is the number of keep-alives that a silent peer gets before it is given up.
	keepAliveProbes = 8
	// creditProbeInterval is the least time between two questions to a peer that grants no credit. The time is
	// 1/creditShare of the wait so far, up to maxRTO. A peer sends new credit unasked; a question only recovers from
	// the loss of that packet.
	creditProbeInterval = 10 * time.Millisecond
	creditShare         = 4

	// maxConns and maxEngines follow from the bits of IDs and keys (docs/WIRE.md).
	maxConns   = 1<<slotBits - 1
	maxEngines = 1 << engineBits
	// maxHalfOpen bounds the half-open connection requests of an engine. An address may hold halfOpenShare times as
	// many places as are free, a network halfOpenPrefix times: at most 456 and 1366. When 64 addresses hold their
	// share, 455 places are free.
	maxHalfOpen    = 4096
	halfOpenShare  = 1.0 / 8
	halfOpenPrefix = 1.0 / 2
	// confirmTime is the time in which an accepted request is not evicted for another one. It is more than the round
	// trip of the networks that this is made for, and less than the time in which a flood of 20,000 requests/s fills a
	// share.
	confirmTime = 50 * time.Millisecond
	// An address may hold connsShare times as many connections of an engine as are free, which is half of all for a
	// single address. A network may hold connsPrefix times as many as are free.
	connsShare  = 1
	connsPrefix = 4
	// An address may hold backlogShare times as many places of a backlog as are free: at most 14 of 16. A network may
	// hold backlogPrefix times as many places as are free: at most 15 of 16. So clients on one host that start together
	// get nearly the whole backlog.
	backlogShare  = 7
	backlogPrefix = 15
	// newcomerFactor multiplies the share of a network for an address that holds no place yet.
	newcomerFactor = 4
	// prefix4 and prefix6 are the prefix lengths of a network in bits. A network of that size usually belongs to one
	// customer or is one LAN.
	prefix4 = 24
	prefix6 = 64

	// freeGuesses is the number of wrong remote keys that an address may send without a block. The next one blocks it
	// for guessDelay, and each further one for twice as long, up to maxGuessDelay: a thousand guesses take a quarter of
	// an hour. The count decays by one in guessDecay. maxGuessers bounds the addresses that are remembered.
	freeGuesses   = 64
	guessDelay    = time.Millisecond
	maxGuessDelay = time.Second
	guessDecay    = time.Second
	maxGuessers   = 1024
	// prefixGuesses is the number for an IPv6 /64. After it, Connects from the /64 are blocked for prefixPause at a
	// time, with a pause of at least that between two blocks. Connect is repeated at least every helloRetryMax, so an
	// honest one gets through in the pause.
	prefixGuesses = 16 * freeGuesses
	prefixPause   = 4 * helloRetryMax

	// maxRejected is the number of rejected requests that an engine remembers to answer repeats.
	maxRejected = 256

	// replyBurst is the size of the bucket of stateless replies, replyPeriod the time in which it fills.
	replyBurst  = 64
	replyPeriod = 10 * time.Millisecond
	// An address may take replyShare times as many tokens in a period as are left, a network replyPrefix times: at most
	// 22 and 32.
	replyShare  = 1.0 / 2
	replyPrefix = 1
)

// maxKeepAlive and MaxGiveUp bound the silence that a connection survives. Time stamps wrap every 275 s and have to
// stay comparable over the sum of both.
const (
	maxKeepAlive = time.Minute
	MaxGiveUp    = time.Minute
)

// Limits are the times after which a connection is given up. 0 means the default.
type Limits struct {
	// GiveUp is how long a peer may be silent while data is unacknowledged. Then the connection breaks. It is at most
	// MaxGiveUp. Default: 10 s, because a debugger, a snapshot or a migration stops a host for some seconds, and a
	// network takes as long to reroute. The end of a peer process is noticed sooner, from ICMP.
	GiveUp time.Duration
	// NotReady is how long a message may wait for a receive of the peer. Then the connection breaks. Default: 30 s.
	NotReady time.Duration
	// KeepAlive is how long a peer may be silent on an idle connection before it gets keep-alives. After a further
	// GiveUp of silence the connection breaks. It is at most maxKeepAlive. Default: 10 s.
	KeepAlive time.Duration
	// ListenGrace is how long Connect is repeated after the first reply that nobody listens, since uDAPL programs
	// announce themselves before they listen. Default: 1 s.
	ListenGrace time.Duration
}

func (l *Limits) setDefaults() {
	if l.GiveUp == 0 {
		l.GiveUp = 10 * time.Second
	}
	if l.NotReady == 0 {
		l.NotReady = 30 * time.Second
	}
	if l.KeepAlive == 0 {
		l.KeepAlive = 10 * time.Second
	}
	if l.ListenGrace == 0 {
		l.ListenGrace = time.Second
	}
	l.KeepAlive, l.GiveUp = min(l.KeepAlive, maxKeepAlive), min(l.GiveUp, MaxGiveUp)
}
