package progress

import "time"

const (
	// lookInterval is the time between two looks of the background owner at an engine that callers drive; while they do,
	// it grows to lookMost within 120 ms. A look takes a spinning caller its core for some 30 µs where no other is idle: with one
	// each millisecond at both ends the p99 of a round trip is 46 µs, with one in 4, 8 and 16 ms 34, 19 and 14 µs
	// (datbench --op send --metric lat, medians of 7). A caller that parks does not wait for the next look, it hands over.
	lookInterval = time.Millisecond
	lookMost     = 8 * time.Millisecond
	// idleSpin is how long the background owner goes on polling after the last packet before it sleeps.
	idleSpin = 20 * time.Microsecond
	// waitSpin is how long a waiter polls without anything happening before it parks: about what parking and a wake-up
	// take.
	waitSpin = 50 * time.Microsecond
	// emptyPolls is the number of empty polls of an engine in a row before the caller's thread yields: some 10 µs.
	// On a busy host one of the threads that wait for the core is the kernel's ksoftirqd, which has the packets: with 16
	// others for two cores a stream of 64-byte messages reaches 0.2 to 0.6 M/s instead of 0.001 (BenchmarkStreamSend64).
	// With a core to itself a yield takes 0.2 µs.
	emptyPolls = 64
	// closeLinger bounds how long closing a driver waits for peers to confirm.
	closeLinger = 200 * time.Millisecond
)
