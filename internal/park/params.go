package park

import "time"

const (
	// patientYields is the number of times that Patience yields before it sleeps. They take 10 to 20 µs, which is longer
	// than another goroutine owns an engine for one poll.
	patientYields = 64
	// ShortestSleep is the first sleep of Patience.Wait, and each sleep of Patience.Nap. Linux makes it 50 µs longer for
	// threads without a real-time priority (timer slack).
	ShortestSleep = 5 * time.Microsecond
	// longestSleep bounds the sleeps of Patience.Wait, and so the delay after the other thread has gone on.
	longestSleep = time.Millisecond
	// mostDoublings of ShortestSleep are more than longestSleep.
	mostDoublings = 8
)
