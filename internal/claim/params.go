package claim

import "time"

const (
	// attempts is how often Claim tries again when another process claims the same qualifier at the same moment. An
	// attempt takes some 2 µs, so even many processes that start together meet twice only seldom.
	attempts = 16
	// longestPause is the longest random time between two attempts. It is long against an attempt.
	longestPause = 500 * time.Microsecond
)
