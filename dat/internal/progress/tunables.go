package progress

import "time"

const (
	// checkInterval is the interval at which the background owner, in phase Watching, checks whether callers still poll
	// the engine. While callers poll, the interval grows to maxCheckInterval within 120 ms. If no other core is idle, a
	// check takes the core from a polling caller for some 30 µs. If both ends of a connection check every 1, 4, 8 or 16
	// ms, the p99 of a round trip is 46, 34, 19 or 14 µs (datbench --op send --metric lat, medians of 7 runs). A long
	// interval does not delay the service of peers, because a caller that parks makes the background owner poll
	// immediately.
	checkInterval    = time.Millisecond
	maxCheckInterval = 8 * time.Millisecond
	// idleSpin is how long the background owner polls after the last packet before it sleeps.
	idleSpin = 20 * time.Microsecond
	// waitSpin is how long a waiter polls without a packet before it parks. It is about the time that parking and
	// waking up take.
	waitSpin = 50 * time.Microsecond
	// maxPollers is the number of waiters that may poll at the same time. Two goroutines of a service often wait in
	// turns, each for 10 to 100 µs: one for messages, and one for the completions of writes. Each of them is faster if
	// it polls. If a third goroutine waits, it is faster to park all and let the background owner poll for them: 32
	// goroutines with a request each make 41,000 requests a second if all poll, and 175,000 if none does
	// (BenchmarkServices in package dat, GOMAXPROCS 2, real-time priority).
	maxPollers = 2
	// starvedAfter is how long after its last poll the background owner is taken to wait for a processor. Meanwhile
	// goroutines that post do not leave their posts to it.
	starvedAfter = 50 * time.Microsecond
	// emptyPolls is the number of consecutive empty polls of an engine after which the caller's thread yields. 64 empty
	// polls take some 10 µs. On a busy host the kernel thread ksoftirqd, which delivers the packets, may wait for the
	// caller's core. With 16 other busy threads on two cores, a stream of 64-byte messages reaches 0.2 to 0.6 M/s with
	// the yield, and 0.001 M/s without the yield (BenchmarkStreamSend64). A yield takes 0.2 µs if no other thread waits
	// for the core.
	emptyPolls = 64
	// emptyPasses is the number of consecutive empty passes of the background owner after which its thread yields. It
	// polls while the goroutines that wait have nothing to do, so the peer, or the thread that will run them, may need
	// the core. 32 goroutines with a request each take 13.4 µs for a request without the yield, and 10.9 µs with it
	// (BenchmarkServices in package dat, GOMAXPROCS 2, two cores for both ends).
	emptyPasses = 16
	// longSilence is the time after which a packet comes too late for polls to pay. It is longer than a round trip to a
	// peer that sleeps, which takes up to 150 µs on a host with idle cores: otherwise both ends would sleep because the
	// other one does. longSilences is the number of long silences in a row after which waiters park at once.
	longSilence  = 300 * time.Microsecond
	longSilences = 2
	// longYield is the longest time that the yield of a thread takes if no other thread computes on the core. If 64
	// goroutines of the peer have requests, a yield to them takes up to 1 ms, but seldom more than 0.5 ms. If a thread
	// computes, a yield takes its time slice: 1.4 ms and the rest of a tick of the scheduler, together 3 to 4 ms with Linux
	// 6.18 (BenchmarkBusyHosts in package dat).
	longYield = 700 * time.Microsecond
	// lossFactor times the loss is the longest time that goroutines do not poll, so polling loses 1 % of the time.
	lossFactor = 100
	// lookInterval is the interval at which spinning goroutines ask the kernel whether network events wait. This takes
	// some 0.3 µs. When a question has found events, the interval is soonInterval for a time of soonAfter. If the
	// goroutines cannot ask, they block for a moment once in blindInterval instead, so that the scheduler of Go looks at
	// the network; this takes 2 µs. BenchmarkBesideWaiters measures the effect.
	lookInterval  = 10 * time.Microsecond
	soonInterval  = 3 * time.Microsecond
	soonAfter     = time.Millisecond
	blindInterval = 50 * time.Microsecond
	// patientLooks is the number of consecutive questions that may find network events before the goroutine that asks
	// blocks. Until then its thread only yields, so that an idle thread may get a core and take the events.
	patientLooks = 2
	// closeLinger is the maximum time that Driver.close waits for peers to confirm the end of their connections.
	closeLinger = 200 * time.Millisecond
)
