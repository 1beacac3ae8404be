package xdp

import "time"

// Tunables. Measured on the reference machine: two cores, kernel 6.18, veth between two namespaces.
const (
	// hostDelayCopy and hostDelayZeroCopy are link.Caps.HostDelay. In copy mode, the kernel moves packets in softirqs, in
	// batches that the two hosts make. With 0, writes of 1 MiB at MTU 9000 between two namespaces have half of their rate; with
	// 60, 150 and 400 µs they have all of it (datbench, two processors).
	hostDelayCopy     = 150 * time.Microsecond
	hostDelayZeroCopy = 20 * time.Microsecond
	// Ring sizes are in slots. The frames of a queue take 16 MiB: 1024 frames are for transmission, 1024 may stay with
	// the owner, and up to 2048 are for reception (see fillLevel). If the owner is descheduled, 2048 frames absorb the
	// packets that arrive in 3 ms at full rate.
	defaultFrames         = 4096
	defaultFrameSize      = 4096
	defaultRxRing         = 2048
	defaultTxRing         = 1024
	defaultFillRing       = 2048
	defaultCompletionRing = 1024
	defaultSendBuffer     = 0

	// unconnectedShare: packets that belong to no connection take at most this part of the tx ring's size.
	unconnectedShare = 4

	minRing   = 64 // leaves room for several packets of maxSegments frames
	maxRing   = 1 << 15
	minFrames = 256
	maxFrames = 1 << 20

	// maxMemory is the largest Options.Memory in bytes. The kernel's limit is 2^32 frames.
	maxMemory = 1 << 40

	// openOverhead is the memory in bytes that an adapter takes beside the frames: engine, path tables, rings, program.
	// Measured with a memory control group: 1.3 to 1.6 MB for 1 to 4 queues.
	openOverhead = 2 << 20

	// headRoom is the space in bytes before Data in every frame from Alloc. The headers for Ethernet, IPv6 and UDP need
	// 62 bytes; headRoom is one cache line.
	headRoom = 64
	// rxHeadRoom is the space in bytes that the kernel leaves before a received packet (XDP_PACKET_HEADROOM).
	rxHeadRoom = 256
	// maxSegments is the kernel's limit of frames in a packet sent in copy mode, MAX_SKB_FRAGS+1.
	maxSegments = 18

	// sourcePortCount is the number of source ports of a device, a power of two. By them the NICs of both ends spread
	// connections over queues. Each costs a descriptor and 20 us at Open. 16 ports spread over 2, 4 and 8 queues reach
	// 2.0, 4.0 and 7.1 of them on average if the hash is random; 8 ports reach 5.3 of 8.
	sourcePortCount = 16

	// loopFrames is the largest number of frames that a socket has sent to itself and not yet received.
	loopFrames = 256
	// mailSlots is the number of packets from other programs of this host that wait for the owner. guardBuffer is the size
	// in bytes of the receive buffer of each guard, which holds what comes before a goroutine reads it.
	mailSlots   = 512
	guardBuffer = 1 << 20

	// maxPacket is the largest IP packet in bytes. Some interfaces have a larger MTU.
	maxPacket = 1<<16 - 1

	// hotFrames is the number of frames that the kernel has for reception while the owner keeps up. This number is
	// small, so that the frames stay in the CPU caches and the TLB. With four times as many frames, writes of 1 MiB are
	// 9 to 15 % slower and a 64-byte round trip takes 5 % longer (docs/PERFORMANCE.md).
	hotFrames = 512
	// The fill level rises above hotFrames when the owner is late: too many received packets wait for it. The level
	// returns to hotFrames when the owner has then received onTimeFrames frames and was not late again.
	onTimeFrames = 1 << 16
	// nicFrames bounds the additional frames for the slots of a NIC's receive ring: 32 MiB per queue.
	nicFrames = 8192
	// rxWakeupPause is the largest number of idle polls between two wakeups that make the driver take frames from the
	// fill ring. The owner makes that number of polls in a few milliseconds.
	rxWakeupPause = 1 << 14
	// stuckPolls is the number of idle polls between two checks for a stalled tx ring. The owner makes that number of
	// polls in about 200 us. The check is needed because a kick has no effect while the interface has no carrier.
	stuckPolls = 1024
	// refillBatch is the number of frames that must be missing from the fill ring before the ring is refilled. So the
	// cache line of the producer index moves between cores only once per batch.
	refillBatch = 32
	// kernelTxBatch is the number of packets that one sendto transmits on kernels without XDP_MAX_TX_SKB_BUDGET.
	kernelTxBatch = 32
	// rawKick is the largest backlog, in tx slots, that is transmitted by a raw system call. The Go scheduler does not
	// notice a raw call, so a garbage collection must wait until the call ends. The call takes about 1.5 us per slot.
	// With a regular system call on a busy machine, the 64-byte round trip rises from 6 us to milliseconds.
	rawKick = 64

	// bindTimeout limits the retries of a bind. A kernel worker frees a queue about 25 ms after its socket was closed. The
	// worker needs the lock of routing netlink, which others may hold for longer than a second.
	bindTimeout = 3 * time.Second
	bindPause   = 2 * time.Millisecond

	// proofTimeout is how long the driver may take to transmit the frame that proves the transmit side. proofPause is
	// the time between two checks.
	proofTimeout = 2 * time.Second
	proofPause   = 50 * time.Microsecond
	// carrierTimeout limits the wait for the carrier after the program was attached. The wait is necessary because some
	// drivers reset their link when a program is attached. Autonegotiation takes 2 to 4 s.
	carrierTimeout = 5 * time.Second

	// The watch, a goroutine of each device, checks the device's tx rings every watchTick. Every watchSlow ticks it
	// also checks what netlink does not report. The cost is about 20 us of processor time per second and queue.
	// Timeouts are counted in ticks, because a clock would also count the time for which the process itself was
	// stopped.
	watchTick = 100 * time.Millisecond
	watchSlow = 10
	// A tx ring is stalled if it holds packets and has not moved for stallTicks. From then on each tick kicks the
	// driver. Flow control may also stop a ring for a while, so the queue is reopened only after reviveTicks.
	stallTicks, reviveTicks = 2, 6
	// addressTicks is the number of ticks for which the device's address may be missing before the device ends. 50
	// ticks are about 5 s, which is enough to take an interface down and up again.
	addressTicks = 50

	// smallestMTU is the least MTU of a link in bytes (RFC 8200 §5). Protocols over UDP need not cut packets below it.
	smallestMTU = 1280

	// tentativeWait limits the wait for duplicate address detection. By default the detection takes 1 s, after a random
	// delay of up to 1 s (RFC 4862 section 5.4.2). tentativePause is the interval at which the address is read.
	tentativeWait  = 3 * time.Second
	tentativePause = 20 * time.Millisecond

	// resolveWait limits the wait for a route that is not known. The kernel returns it in 20 us, unless its lock of network
	// settings (RTNL) is held.
	resolveWait = 200 * time.Millisecond

	// pendingPoll limits Wait while the tx ring holds packets that only a system call transmits.
	pendingPoll = 200 * time.Microsecond
)
