package route

import "time"

const (
	// kickFirst and kickLast limit the pause between two requests to resolve a neighbour that does not answer. On each
	// request the kernel itself solicits three times in three seconds, and every host of the link gets these packets. If
	// the MAC address is known from before, kickKnown is the limit.
	kickFirst = 100 * time.Millisecond
	kickLast  = 2 * time.Second
	kickKnown = time.Minute
	// refresh is the interval at which a resolved neighbour is marked as used. It is well below 60 s, after which the
	// kernel may drop an unused entry (net.ipv4.neigh.*.gc_stale_time).
	refresh = 20 * time.Second
	// evicted is the time after which an entry is asked for again that the kernel has removed. A full table removes entries
	// to make room for others. If these entries came back at once, the table would be full again. The time is below the
	// default time for which a peer may be silent, because the peer may have another MAC address now.
	evicted = 5 * time.Second
	// resolvePause and resolveBurst limit the rate at which Answer makes the kernel resolve neighbours. The kernel's
	// entry for an unused address stays for at least 3 s. Below gc_thresh1 entries, it stays until the space is needed.
	resolvePause = 100 * time.Millisecond
	resolveBurst = 32
	// resolveMemory is the time for which Reach remembers that a neighbour could not be resolved. In this time
	// resolvePause admits more neighbours than an IPv4 /22 has.
	resolveMemory = 2 * time.Minute
	// probeBatch is the largest number of claims that are probed per lookPause. At most maxProbes probes are
	// remembered, each for probeTime. This time is short because a host answers at once.
	probeBatch = 8
	maxProbes  = 4096
	probeTime  = time.Second
	// confirmedTime is the time for which an answer to a probe is used. It is longer than a handshake with lost packets.
	confirmedTime = 5 * time.Second
	// lookPause is the time between two checks for claims. It limits the processor time that a flood of claims can
	// cost.
	lookPause = time.Millisecond
	// settle is the delay before routes are looked up again after a change, because changes come in groups.
	settle = 10 * time.Millisecond
	// lookupShare and lookupBurst limit the processor time of these lookups: on average one part in lookupShare of a
	// processor, and after a quiet time up to one part in lookupShare of lookupBurst at once. A lookup for 3000 peers takes
	// 40 ms. So five such lookups may follow each other, and then one every 2 s.
	lookupShare = 50
	lookupBurst = 10 * time.Second
	// closeWait is the time for which Close waits for goroutines. They answer at once unless the kernel's lock of network
	// settings (RTNL) is held.
	closeWait = 500 * time.Millisecond
	// recheck is the interval at which all routes are looked up again. It is needed because the table does not listen to
	// all that decides about routes, such as changes of nexthop objects.
	recheck = 30 * time.Second
	// requestTimeout bounds the time between a request and the kernel's response. It does not bound the request itself, in
	// which the kernel waits for its lock of network settings (RTNL).
	requestTimeout = requestSeconds * time.Second
	requestSeconds = 5
	// dumpAttempts is the number of attempts to list the addresses while addresses of the host change. An attempt fails
	// only if a change comes between two messages of the list, which has some 300 addresses per message.
	dumpAttempts = 10
)
