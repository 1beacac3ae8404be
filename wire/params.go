package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/congestion"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Tunables of the protocol. Times are of the sender's clock; counts are of packets unless said
// otherwise.
const (
	// maxWindow bounds the packets in flight on one connection.
	maxWindow = congestion.MaxWindow
	// minPacket is the smallest largest packet that a peer may name: one with all of a handshake.
	minPacket = proto.HeaderSize + proto.MaxHelloSize + proto.TrailerSize
	// minPeerWindow is the smallest window in packets that a peer may name.
	minPeerWindow = 32
	// blackHoleTries is after how many timeouts in a row full packets are taken to be too large.
	blackHoleTries = 6

	// eagerRequests is how many requests a connection may have outstanding and still send each in a packet of its own.
	// With more, a partial packet waits while another one is not acknowledged, so that small operations
	// share packets: on copy-mode AF_XDP a packet costs as much as some twenty packed messages, from post to completion.
	eagerRequests = 4
	// tokenTime is the idle time that a partial packet takes, bucketSize how many tokens the bucket holds. A post adds
	// postTokens: 32 posts are a token; 16 to 128 make no difference that can be told from noise, 1 is a packet for each
	// message (decision 0005). A busyShare-th of any time counts as idle, so that packets that come in masses do not keep
	// others from leaving.
	postTokens = 64 * time.Nanosecond
	tokenTime  = 32 * postTokens
	bucketSize = 64
	busyShare  = 128
	// pausePolls is how many polls in a row without a post are a pause, which fills the bucket: more than a
	// consumer makes that takes completions between posts until there are none.
	pausePolls = 8
	// postTime and packetTime are what a post and a packet take on a slow host. Time beyond is idle.
	postTime   = time.Microsecond
	packetTime = 8 * time.Microsecond
	// minLeft is how many completions a consumer has left to take while its posts are deferred, maxDeferred how many
	// posts in a row are at most. 64-byte messages a second on one connection: without 3.0 M, with 32
	// 3.8 M, with 64 4.4 M, with 256 4.2 M (dat: BenchmarkStreamSend64).
	minLeft     = 8
	maxDeferred = 64
	// zeroCopyBlocks is how many blocks of the link's memory are sent without a copy at least. A packet has one or two more
	// segments then, and on copy-mode AF_XDP a segment costs the kernel what copying some 10 KiB costs us: writes of
	// 1 MiB at an MTU of 9000 would be 25 % slower (dat: BenchmarkWrite1M).
	zeroCopyBlocks = 8
	// smallOp is the size in bytes up to which an operation is not cut over two packets.
	smallOp = 256

	// ackEvery is how many packets are acknowledged together when the sender does not ask sooner.
	ackEvery = 32
	// ackDelay bounds how long an acknowledgement that nobody asked for is held back.
	ackDelay = 100 * time.Microsecond

	// minRTO is the shortest timeout after which all packets are sent again, maxRTO bounds its back-off (RFC 6298 §5.5 to
	// §5.7). The bound has to exceed the time that a peer
	// needs to read what all connections of a host send it in one: 4000 connections at 25 ms are 160,000
	// packets/s, and a process that was stopped for 1 s never caught up.
	minRTO = 500 * time.Microsecond
	maxRTO = time.Second
	// busyRTO is the bound while anything arrives at the engine, from this peer or another. The path works then, and
	// a longer back-off lets connections starve where many share a queue that is too short for them: with 500 ms
	// some of 40 that share 12 places send nothing for 2 s.
	busyRTO = 300 * time.Millisecond
	// suspendTime is by how much a Poll has to be late for the engine to have been stopped, and catchUp for
	// how long at most it then reads what has arrived before it runs its timers.
	suspendTime = 100 * time.Millisecond
	catchUp     = 100 * time.Millisecond
	// resumeAckBatch is how many connections are told every resumeAckEvery that the engine goes on after a stall.
	resumeAckBatch = 32
	resumeAckEvery = time.Millisecond
	// resumeAckPause is how seldom that is because of packets alone, without a timer that was due.
	resumeAckPause = time.Second

	// evictTries is how many connections are looked at for an early packet to let go of.
	evictTries = 8

	// maxReceive and maxTransmit bound the frames that one Poll handles in each direction.
	maxReceive  = 64
	maxTransmit = 64
	// maxTimers bounds the timers that one Poll runs: thousands of handshakes that end together, each with a packet to
	// send, do not keep the packets of others waiting.
	maxTimers = 64
	// maxBurst is how many packets one connection may send before the others have their turn.
	maxBurst = 32

	// helloRetry is the time between two Connect or Accept packets; it doubles, up to helloRetryMax. acceptTries is how
	// often Accept is repeated other than for a repeated Connect.
	helloRetry    = 5 * time.Millisecond
	helloRetryMax = 100 * time.Millisecond
	acceptTries   = 3
	// closeTries is how often Close is sent before a silent peer is given up.
	closeTries = 8
	closeRetry = 5 * time.Millisecond
	// promptChallenges is how many Challenges of one attempt to connect are answered at once. The cookies of
	// others wait for the next try, so that a peer cannot make us send.
	promptChallenges = 3
	// rnrDelayMin is how long a message waits that found no receive at a peer that promises none; it
	// doubles up to rnrDelayMax while that goes on.
	rnrDelayMin = 200 * time.Microsecond
	rnrDelayMax = 50 * time.Millisecond
	// maxCredit bounds what a peer can promise beyond what was sent, so that its count does not go round.
	maxCredit = 1 << 30
	// keepAliveProbes is how often a silent peer is probed before it is given up.
	keepAliveProbes = 8
	// creditProbeInterval is the least time between probes of a peer that grants no credit. It grows with the time for
	// which there has been none, by creditShare of it, up to maxRTO: a peer tells of new receives by itself, a
	// probe finds out that this was lost.
	creditProbeInterval = 10 * time.Millisecond
	creditShare         = 4

	// maxConns and maxRegions are limits of the numbering (docs/WIRE.md).
	maxConns   = 1<<slotBits - 1
	maxEngines = 1 << engineBits
	maxRegions = 1<<regionBits - 1
	// maxHalfOpen bounds the connection requests of one engine that are not established yet. An address may have
	// halfOpenShare of those that are free, a network halfOpenPrefix: alone 455 and 1365. Beside 64 addresses that
	// ask for all they get there are 455 free.
	maxHalfOpen    = 4096
	halfOpenShare  = 1.0 / 8
	halfOpenPrefix = 1.0 / 2
	// confirmTime is for how long an accepted request keeps its place though others of its address or network want it: more
	// than the round trip of a network that this is for, less than the time in which a flood of 20,000/s fills a share.
	confirmTime = 50 * time.Millisecond
	// An address may have as many connections of an engine as there are free, which is half of them if it is
	// alone; a network connsPrefix times as many.
	connsShare  = 1
	connsPrefix = 4
	// backlogShare of the places of a backlog that are free is what an address may have, backlogPrefix its network: alone 14 and
	// 15 of 16. Clients that start together on one host get nearly the backlog that the consumer asked for.
	backlogShare  = 7
	backlogPrefix = 15
	// newcomers is how many times its share of the places of a quota a network may have when an address of it that has none
	// asks for its first.
	newcomerFactor = 4
	// prefix4 and prefix6 are the bits of an address that name its network: that of one customer, or a LAN.
	prefix4 = 24
	prefix6 = 64

	// freeGuesses is how many wrong remote keys a network may have without a wait; the next is guessDelay, twice
	// as long with each one more, up to maxGuessDelay: a thousand guesses take a quarter of an hour. One is forgiven in each guessDecay.
	// maxGuessers bounds the networks that are remembered.
	freeGuesses   = 64
	guessDelay    = time.Millisecond
	maxGuessDelay = time.Second
	guessDecay    = time.Second
	maxGuessers   = 1024
	// An IPv6 /64 as a whole has prefixGuesses, and then its newcomers wait for prefixPause at a time, between which there is
	// at least as much: tries of Connect are helloRetryMax apart.
	prefixGuesses = 16 * freeGuesses
	prefixPause   = 4 * helloRetryMax

	// maxRejected is how many requests that were rejected an engine remembers, to answer their repeats.
	maxRejected = 256

	// replyBurst is how many tokens the bucket holds, replyPeriod how long it takes to fill.
	replyBurst  = 64
	replyPeriod = 10 * time.Millisecond
	// replyShare and replyPrefix are the tokens that an address and a network may take in a period, as multiples of those
	// that are left: alone 22 and 32.
	replyShare  = 1.0 / 2
	replyPrefix = 1
)

// maxKeepAlive and MaxGiveUp keep time stamps comparable, which wrap every 275 s, over a silence of
// both together.
const (
	maxKeepAlive = time.Minute
	MaxGiveUp    = time.Minute
)

// Limits are the times after which a connection is given up. The zero value of a field means its default.
type Limits struct {
	// GiveUp is how long a peer may be silent while data is unacknowledged before the connection
	// breaks. Default 10 s, at most MaxGiveUp: a host may be stopped for some seconds, by a debugger, a
	// snapshot or a migration, and a network needs as long to find another way. A process that has ended
	// is told sooner, by its host.
	GiveUp time.Duration
	// NotReady is how long a message may wait for a receive to be posted at the peer before the
	// connection breaks. Default 30 s.
	NotReady time.Duration
	// KeepAlive is how long a peer may be silent on an idle connection before it is probed; it is
	// given up after GiveUp more. Default 10 s, at most maxKeepAlive.
	KeepAlive time.Duration
	// ListenGrace is how long an active side goes on asking after "no listener" before it reports it:
	// uDAPL programs announce themselves before they listen. Default 1 s.
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
