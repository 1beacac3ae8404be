package xdp

import "time"

// Tunables. Measured on the reference machine: two cores, kernel 6.18, veth between two namespaces.
const (
	// Sizes in slots and frames. 16 MiB of UMEM per queue: 1024 frames to transmit, 1024 held, 2048
	// to receive into once the owner was late (pacer), which is 3 ms of full rate while it is off its core.
	defaultFrames         = 4096
	defaultFrameSize      = 4096
	defaultRxRing         = 2048
	defaultTxRing         = 1024
	defaultFillRing       = 2048
	defaultCompletionRing = 1024
	defaultSendBuffer     = 0

	minRing   = 64 // a packet of maxSegments frames must fit with room to spare
	maxRing   = 1 << 15
	minFrames = 256
	maxFrames = 1 << 20

	// maxMemory is the most bytes of memory behind the frames; the kernel's limit is 2^32 frames.
	maxMemory = 1 << 40

	// headRoom is what every frame from Alloc has in front of Data, in bytes: 62 bytes of Ethernet,
	// IPv6 and UDP, rounded up to a cache line.
	headRoom = 64
	// rxHeadRoom is what the kernel leaves in front of a received packet (XDP_PACKET_HEADROOM).
	rxHeadRoom = 256
	// maxSegments is the kernel's limit for a packet sent in copy mode, MAX_SKB_FRAGS+1.
	maxSegments = 18

	// loopFrames is the number of frames on their way from us to ourselves.
	loopFrames = 256

	// maxPacket is the largest IP packet in bytes; the MTU of some interfaces is larger.
	maxPacket = 1<<16 - 1

	// hotFrames is the number of frames that the kernel has to receive into as long as the owner keeps up: the
	// ring goes round, and so few stay in the caches and the TLB. With four times as many, writes of 1 MiB are 9 to 15 %
	// slower and a round trip of 64 bytes takes 5 % more (docs/PERFORMANCE.md).
	hotFrames = 512
	// calmFrames is how many frames the owner takes without being late until hotFrames are enough again.
	calmFrames = 1 << 16
	// nicFrames bounds how many slots of a NIC's receive ring get frames on top of the others: 32 MiB a queue.
	nicFrames = 8192
	// nudgePause is the most idle turns between two system calls for the fill ring: a few milliseconds of spinning.
	nudgePause = 1 << 14
	// stuckTurns is the number of idle turns between two looks at a tx ring that may stand still: some 200 us of
	// spinning. A driver that lost its carrier forgets what it was asked for.
	stuckTurns = 1024
	// refillBatch is the number of frames that the fill ring lacks before it is topped up: the
	// producer line then moves between cores once per batch.
	refillBatch = 32
	// kernelTxBatch is what one sendto moves where the kernel has no XDP_MAX_TX_SKB_BUDGET.
	kernelTxBatch = 32
	// rawKick is the largest backlog of tx slots that is kicked without telling the Go scheduler:
	// it bounds how long a garbage collection can wait for the call, about 1.5 us a slot. With the
	// hand-off on a machine that is busy, the 64-byte round trip goes from 6 us to milliseconds.
	rawKick = 64

	// A queue is freed some 25 ms after the socket on it was closed, by a kernel worker.
	bindPatience = time.Second
	bindPause    = 2 * time.Millisecond

	// proofPatience is how long the frame that proves a transmit side may stay with the driver, and proofPause the time
	// between two looks.
	proofPatience = 2 * time.Second
	proofPause    = 50 * time.Microsecond
	// carrierPatience is how long a driver may take to have its carrier again that lost it when the program was attached:
	// autonegotiation is 2 to 4 s.
	carrierPatience = 5 * time.Second

	// The watch of a device looks at its transmit rings every watchTick, and at what no message tells every watchSlow
	// ticks: some 20 us a second for one queue. It counts ticks and not time, so that a process which was stopped does
	// not take its own absence for a fault.
	watchTick = 100 * time.Millisecond
	watchSlow = 10
	// stallTicks is how long a transmit ring may stand still while packets wait until it is a stall, which is kicked on
	// each tick, and reviveTicks until the queue is opened again: flow control may hold a ring up.
	stallTicks, reviveTicks = 2, 6
	// addressTicks is how long the device's address may be missing: some 5 s, for who takes an interface down and up.
	addressTicks = 50

	// pendingPoll bounds Wait while packets are left in the tx ring that only a system call moves.
	pendingPoll = 200 * time.Microsecond
)
