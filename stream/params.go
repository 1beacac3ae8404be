package stream

import "time"

// defaultBacklog is the number of streams that may wait for Accept. They take 1.5 MiB.
const defaultBacklog = 128

// unusedTime is the time for which an adapter without streams stays open for the next dial. To open and close one takes 2 ms
// over kernel UDP and 0.1 s over AF_XDP, where the kernel waits for grace periods of RCU. So a program that dials once
// or more in a second, and closes each stream, opens the adapter once.
const unusedTime = time.Second

// Tunables of closed streams.
const (
	// closeWait is the time for which Close waits for acknowledgements, if nothing but these is outstanding. An
	// acknowledgement takes a round trip, and 0.1 ms in a data center. So a program that ends after Close has delivered its
	// bytes, unless the peer does not read.
	closeWait = 10 * time.Millisecond
	// closeHaste is the time for which no Close waits after one that has waited in vain. So a program that closes many
	// streams to a peer that has stopped waits for one of them.
	closeHaste = time.Second
	// orphanTime is the time after which an orphan is reset if its peer takes no bytes. Linux has about two minutes
	// (tcp_orphan_retries, with a growing probe timer).
	orphanTime = 2 * time.Minute
	// unreadTime is orphanTime of a stream whose peer sends bytes that nobody will read. TCP resets such a connection at
	// once (RFC 2525 section 2.17), and the peer can lose bytes that it has not read.
	unreadTime = 5 * time.Second
	// maxOrphans is the number of orphans of an adapter. Each takes about 12 KiB and its rings, which count toward
	// maxMemory. The orphans of an address and of a network have the shares of memoryShare and memoryNetwork.
	maxOrphans = 4096
)
