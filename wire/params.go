package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Tunables of the protocol. Times are measured on the sender's clock. Counts are in packets unless the comment names
// another unit.
const (
	// maxWindow bounds the packets in flight on a connection.
	maxWindow = proto.MaxWindow
	// minPacket is the smallest MTU that a peer may have. Every handshake packet fits into it.
	minPacket = proto.HeaderSize + proto.MaxHelloSize + proto.TrailerSize
	// beyondWindow is the number of packets that may be in flight besides a full window: a Probe and a tail loss probe.
	beyondWindow = 2
	// minPeerWindow is the smallest receive window that a peer may have.
	minPeerWindow = 32

	// A connection with at most nagleThreshold outstanding requests may send each request in a packet of its own. With
	// more outstanding requests, Nagle's algorithm (RFC 896) makes small requests share packets. In copy-mode AF_XDP,
	// the time from post to completion is about the same for one message in a packet of its own and for twenty messages
	// in one shared packet.
	nagleThreshold = 4
	// A token permits one partial packet (see scheduler). Tokens come from a token bucket, whose content is a time:
	// idle time adds its length to the bucket, and each post adds postTokens. Taking a token removes tokenTime from the
	// bucket. So 2 us of idle time buy a token, and so do 32 posts. The message rate is the same, within the noise,
	// with 16 to 128 posts per token. With one post per token, each message would have its own packet (decision 0005).
	postTokens = 64 * time.Nanosecond
	tokenTime  = 32 * postTokens
	// bucketSize is the number of tokens in the full token bucket.
	bucketSize = 64
	// busyShare makes sure that waiting partial packets leave even while the sender is busy. Each partial packet needs
	// a token, and idle time fills the token bucket (see postTokens). But a sender that is always busy with received
	// packets has no idle time. Therefore at least 1/busyShare of all time counts as idle time.
	busyShare = 128
	// pausePolls is the number of consecutive polls without a post after which the sender counts as idle. The token
	// bucket is then filled completely. A consumer that alternately posts and takes its completions makes fewer than
	// pausePolls polls between two posts, so it does not count as idle.
	pausePolls = 8
	// postTime and packetTime are the times that one post and one packet take on a slow host. From the time between two
	// polls, the scheduler subtracts the time of the posts and packets. The rest is idle time.
	postTime   = time.Microsecond
	packetTime = 8 * time.Microsecond
	// A post is deferred only if at least minLeft completions are queued for the consumer (see deferPost). maxDeferred
	// bounds the consecutive posts that are deferred. One connection sends 3.0 M messages/s of 64 bytes with
	// maxDeferred 0, 3.8 M with 32, 4.4 M with 64, and 4.2 M with 256 (dat: BenchmarkStreamSend64).
	minLeft     = 8
	maxDeferred = 64
	// zeroCopyBlocks is the least amount of data that the engine sends without a copy, in blocks of link memory (see
	// link.Caps). Sending without a copy adds one or two segments to a packet. In copy-mode AF_XDP, the kernel takes as
	// much time for one segment as the engine takes to copy about 10 KiB. With a smaller number, writes of 1 MiB at an
	// MTU of 9000 would be 25 % slower (dat: BenchmarkWrite1M).
	zeroCopyBlocks = 8
	// smallOp is the size in bytes up to which an operation is never divided between two packets.
	smallOp = 256

	// ackEvery is the number of received packets after which an unrequested acknowledgement leaves.
	ackEvery = 32
	// ackDelay is the longest delay of an unrequested acknowledgement.
	ackDelay = 100 * time.Microsecond

	// echoPrecision is how much later an echoed time stamp may seem than it is: the time stamp, and the time that the peer
	// adds to it, are each rounded down to a unit.
	echoPrecision = 2 << clock.StampShift * time.Nanosecond
	// minRTO is the shortest timeout after which all outstanding packets are sent again.
	minRTO = 250 * time.Microsecond
	// The exponential back-off of this timeout (RFC 6298 §5.5 to §5.7) grows to minBackoff, or to silentInterval × the
	// number of silent connections if that is more, but at most to maxRTO. After an outage of the path, a connection
	// waits for its next retransmission, so minBackoff is most of the time until it works again. While a peer does not
	// answer, every connection to it retransmits, and the peer must be able to read these packets when it resumes. With
	// 25 ms for each of 4000 connections, they sent 160,000 packets/s, and a peer process that had been stopped for 1 s
	// never caught up. With silentInterval they send 10,000 packets/s.
	minBackoff     = 200 * time.Millisecond
	silentInterval = 100 * time.Microsecond
	maxRTO         = time.Second
	// suspendTime is the shortest suspension that the engine detects. A suspension ends with a Poll that comes at least
	// suspendTime after a timer was due. The engine then runs no timers until it has read the waiting packets or
	// catchUp has passed, whichever comes first.
	suspendTime = 100 * time.Millisecond
	catchUp     = 100 * time.Millisecond
	// After a suspension, every connection sends one Ack (but see suspend.go). The engine sends resumeAckBatch of these Acks per
	// resumeAckEvery.
	resumeAckBatch = 32
	resumeAckEvery = time.Millisecond
	// If no timer was due between two Polls that are suspendTime or more apart, the engine cannot know whether the
	// process was suspended or idle. It then starts a round of Acks (see the comment in suspend.go) only if the last
	// round started at least resumeAckPause before.
	resumeAckPause = time.Second

	// maxReceive is the largest number of frames that one Poll receives. maxTransmit is the largest number of packets
	// that one Poll sends for ready connections. One Poll also sends at most bucketSize partial packets. When
	// maxTransmit frames are built, the engine hands them to the link.
	maxReceive  = 64
	maxTransmit = 64
	// maxTimers bounds the timers of one Poll that do work: that send a packet or end a connection. The timers of
	// thousands of connections may fire together, and a timer that sends a packet takes about 8 us. The bound limits the delay of other connections and of the caller of
	// Poll. With a maxTimers of 64, accepting a request took 1 ms while 2000 connections per second were abandoned.
	maxTimers = 8
	// A timer that does no work counts as 1/idleTimers of one that does. Such a timer takes less than 0.5 us. A Poll can
	// therefore handle more of them than the packets that it receives can arm.
	idleTimers = 16
	// maxDue bounds the connections that one Poll queues because their timers are due. It is more than the number of
	// timers that the packets of one Poll can arm.
	maxDue = 256
	// silentAfter is the number of unanswered packets after which a peer counts as silent. The timers of silent peers
	// then wait for the timers of other peers (see timers). It is 2 because a path without an attacker rarely loses two
	// unanswered packets in a row.
	silentAfter = 2
	// maxBurst is the number of packets that a connection may send before the next connection sends. If many
	// connections are ready, each sends only roundPackets / ready connections, but at least one packet. So if at most
	// roundPackets connections are ready, a round in which each of them sends once has at most roundPackets packets.
	maxBurst     = 48
	roundPackets = 1024

	// helloRetry is the time to the first repeat of Connect or Accept. The time doubles up to helloRetryMax.
	// acceptTries bounds the repeats of Accept that the timer sends. An Accept that answers a repeated Connect does not
	// count.
	helloRetry    = 5 * time.Millisecond
	helloRetryMax = 100 * time.Millisecond
	acceptTries   = 3
	// lostAcceptWait is the time, in secure mode, in which a requester has to confirm its connection after somebody has
	// sent a Reset for it. It is longer than a requester takes to read message 2.
	lostAcceptWait = time.Second
	// abandonedWait is the time, in secure mode, for which a requester that has given up can still close the connection that
	// the server accepts. It is the time after which a server gives a silent requester up. An engine keeps maxAbandoned such
	// attempts, of about 2 KiB each.
	abandonedWait = 10 * time.Second
	maxAbandoned  = 1024
	// closeTries is the number of Close packets to a silent peer. closeRetry is the time to the first repeat.
	closeTries = 8
	closeRetry = 5 * time.Millisecond
	// timeWait is how long an engine remembers a connection that both ends have closed: as long as a peer repeats Close. An
	// engine remembers at most maxClosedConns, which is enough for 3200 connections that end in a second. One takes 150
	// bytes.
	timeWait       = closeRetry * (1<<closeTries - 1)
	maxClosedConns = 4096
	// promptChallenges is the number of Challenges, in one connection attempt, that this side answers with an immediate
	// Connect. A further Challenge only replaces the cookie, and the timer sends the next Connect. So a peer cannot
	// make this side send Connects at the rate of its Challenges.
	promptChallenges = 3
	// rnrDelayMin is the first wait of the RNR timer; it doubles up to rnrDelayMax.
	rnrDelayMin = 200 * time.Microsecond
	rnrDelayMax = 50 * time.Millisecond
	// maxCredit is the largest credit that this side accepts, counted in messages after the last message that was sent.
	// Message numbers wrap at 2^32. With a larger credit, it would be unclear which of two message numbers is later.
	maxCredit = 1 << 30
	// keepAliveProbes is the number of keep-alives to a silent peer before the connection breaks.
	keepAliveProbes = 8
	// windowRetry is the longest time between two looks at the keys that other engines use, while a connection waits for
	// one of them (see windowUse). Polls that the program or the background owner makes for other reasons look too. The
	// other engine is at most a few microseconds from the end of its Poll, unless the operating system has stopped its
	// thread, which lasts for milliseconds. So a shorter time would gain little.
	windowRetry = 50 * time.Microsecond
	// creditProbeInterval is the least time between two requests for credit. The time between requests grows with the
	// wait: it is 1/creditShare of the wait so far, at most maxRTO. A peer also sends new credit without a request. A
	// request helps if the packet with the new credit was lost.
	creditProbeInterval = 10 * time.Millisecond
	creditShare         = 4

	// maxConns bounds the connections of an engine, and maxEngines the engines of a host. Both follow from the widths
	// of the fields of a connection ID (docs/WIRE.md).
	maxConns   = 1<<slotBits - 1
	maxEngines = 1 << engineBits
	// maxHalfOpen is the number of places for half-open connection requests of an engine. An address may hold at most
	// halfOpenShare × the number of free places, so an address that is alone gets 456 places. A network may hold at most
	// halfOpenPrefix × the number of free places, so a network that is alone gets 1366 places. The limits shrink with
	// the free places: 64 addresses at their limits leave 4096/(1+64/8) = 455 places free.
	maxHalfOpen    = 4096
	halfOpenShare  = 1.0 / 8
	halfOpenPrefix = 1.0 / 2
	// confirmTime is how long an accepted request is protected from eviction by new requests (see admit). It is longer
	// than the round trip of the networks that the protocol is made for. It is shorter than the 68 ms in which a flood
	// of 20,000 requests/s fills the 1366 places that a network may hold.
	confirmTime = 50 * time.Millisecond
	// connsShare and connsPrefix divide the connections of an engine. An address may hold at most connsShare × the
	// number of free connections. So an address that is alone gets half of all connections: the other half is free
	// then. A network may hold at most connsPrefix × the number of free connections. So a network that is alone gets
	// 4/5 of all connections: 1/5 is free then, and 4/5 is 4 × 1/5.
	connsShare  = 1
	connsPrefix = 4
	// backlogShare and backlogPrefix divide the places of a backlog. An address may hold at most backlogShare × the
	// number of free places. So an address that is alone gets 14 of 16 places: 2 are free then, and 14 is 7 × 2. A
	// network may hold at most backlogPrefix × the number of free places, so a network that is alone gets 15 of 16
	// places. Thus clients on one host that start together get nearly the whole backlog.
	backlogShare  = 7
	backlogPrefix = 15
	// newcomerFactor multiplies the threshold of a network for an address that holds no place yet (see quota).
	newcomerFactor = 4
	// prefix4 and prefix6 are the prefix lengths in bits that define a network, for IPv4 and IPv6. Such a network
	// usually belongs to one customer or is one LAN.
	prefix4 = 24
	prefix6 = 64

	// freeGuesses is the number of wrong remote keys that an address may send before its Connects are dropped (see
	// guessLimiter). After the next wrong key, the Connects of the address are dropped for guessDelay. Each further
	// wrong key doubles this time, up to maxGuessDelay. So a thousand guesses take a quarter of an hour. The count of
	// wrong keys decreases by one per guessDecay. At most maxGuessers addresses and maxGuessers networks have a count.
	freeGuesses   = 64
	guessDelay    = time.Millisecond
	maxGuessDelay = time.Second
	guessDecay    = time.Second
	maxGuessers   = 1024
	// prefixGuesses is the number of wrong remote keys that an IPv6 /64 may send before its Connects are dropped. The
	// next wrong key begins a period in which the Connects of the /64 are dropped. The period lasts at most
	// prefixPause. No wrong key begins another such period until at least prefixPause has passed since the end of the
	// last one. An honest requester repeats Connect at least once per helloRetryMax, so one of its Connects arrives
	// between two periods.
	prefixGuesses = 16 * freeGuesses
	prefixPause   = 4 * helloRetryMax

	// maxRejected is the number of rejected requests that an engine keeps to answer a repeated Connect.
	maxRejected = 256

	// replyBurst is the number of tokens in a full bucket for stateless replies (see replyLimiter). replyPeriod is the
	// time in which an empty bucket fills. A peer notices a restart by two Resets. In a flood of 60,000 packets/s of
	// unknown connections, 256 tokens answer a packet with a probability of 0.4; with 64 tokens, the probability was 0.1,
	// and every third peer noticed the restart after a second or later.
	replyBurst  = 256
	replyPeriod = 10 * time.Millisecond
	// replyShare and replyPrefix divide the tokens of one replyPeriod. An address gets another token only while it has
	// taken fewer than replyShare × the number of tokens left. So an address that is alone gets 86 of 256 tokens. A
	// network gets another token only while it has taken fewer than replyPrefix × the number of tokens left. So a
	// network that is alone gets 128.
	replyShare  = 1.0 / 2
	replyPrefix = 1

	// shedCount is the number of ignored Connects of an address within shedPeriod for which the link drops all Connects of
	// the address for shedTime (see shedding): 200,000/s, 20 times as many as get an answer.
	shedCount  = 2000
	shedPeriod = 10 * time.Millisecond
	shedTime   = time.Second

	// replyAddress, replyNetwork and replyEngine divide the time of a processor (see replyTime): slow replies to an
	// address may take 1/replyAddress of it, those to a network 1/replyNetwork, and those of an engine 1/replyEngine.
	replyAddress = 16
	replyNetwork = 8
	replyEngine  = 4
	// replyTolerance is how far an account may be ahead of the clock: 3 ms of replies to an address at once. A shorter
	// tolerance would pause honest addresses when the system preempts the engine during a reply.
	// replyNeighbour is the tolerance of the accounts of a network and of an engine for an address without slow replies:
	// 12.5 ms of replies to the network, or 25 ms of replies of the engine, at once. A slow reply of 12 ms to an address
	// thus does not pause others of its network.
	replyTolerance = 50 * time.Millisecond
	replyNeighbour = 100 * time.Millisecond
	// slowReply is the least time of a slow reply. A reply to an address costs 2^n times its time, where n is the number
	// of slow replies less that of others, from 0 to replyPrice. Preemption makes a reply slow, but rarely two.
	slowReply  = 100 * time.Microsecond
	replyPrice = 4
	// replySample is the number of replies of which one is measured. Measuring all takes a tenth of the rate of connects,
	// and more in a flood, because a measured reply does not share a system call with others.
	replySample = 8
	// replyPause is how far a reply may move an account ahead of the clock, because the process may be stopped while it
	// sends the reply.
	replyPause = 2 * time.Second
)

// maxKeepAlive and MaxGiveUp are the largest values of the limits KeepAlive and GiveUp. A connection survives a silence
// of at most their sum. The time stamps before and after such a silence must be comparable, so the sum is less than
// half of the 275 s after which time stamps wrap.
const (
	maxKeepAlive = time.Minute
	MaxGiveUp    = time.Minute
)

// Limits are the time limits of connections. 0 means the default.
type Limits struct {
	// GiveUp is how long a peer may be silent while data is unacknowledged. After that time the connection breaks.
	// GiveUp is at most MaxGiveUp. Default: 10 s, because a debugger, a snapshot or a migration can stop a host for
	// some seconds, and rerouting in a network can also take some seconds. If only the peer process ends, ICMP port
	// unreachable reports it sooner.
	GiveUp time.Duration
	// NotReady is how long a message may wait for a receive of the peer before the connection breaks. Default: 30 s.
	NotReady time.Duration
	// KeepAlive is how long the peer of an idle connection may be silent before this side sends keep-alives. If the
	// peer then stays silent for GiveUp, the connection breaks. KeepAlive is at most maxKeepAlive. Default: 10 s.
	KeepAlive time.Duration
	// ListenGrace is how long this side repeats Connect after it has learned for the first time that no program
	// listens. A uDAPL program may announce its address before it listens. Default: 1 s.
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
