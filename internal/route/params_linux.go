package route

import "time"

const (
	// kickFirst and kickLast bound the pause between two requests to resolve a neighbour that does
	// not answer. The kernel itself asks three times in three seconds per request.
	kickFirst = 100 * time.Millisecond
	kickLast  = 2 * time.Second
	// refresh is how often a resolved neighbour is marked as used: well below the 60 s after which
	// the kernel may drop an entry that nobody uses (net.ipv4.neigh.*.gc_stale_time).
	refresh = 20 * time.Second
	// resolvePause and resolveBurst bound the neighbours that Answer has the kernel ask for: an address that nobody has
	// is in the kernel's table for 3 s at least and, below gc_thresh1 entries, until others need the place.
	resolvePause = 100 * time.Millisecond
	resolveBurst = 32
	// probeBatch bounds the claims that are probed in a lookPause. maxProbes is how many are remembered, probeTime for how
	// long: a host answers at once.
	probeBatch = 8
	maxProbes  = 4096
	probeTime  = time.Second
	// lookPause is the time between two claims that are looked at, so that a flood of claims takes no processor.
	lookPause = time.Millisecond
	// settle is how long routes are left to change before they are looked up again.
	settle = 10 * time.Millisecond
	// recheck is how often all routes are looked up without being told to. The kernel announces no
	// path MTU that a router reported, and no change of policy rules.
	recheck = 30 * time.Second
)
