package wire

import (
	"math"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/reassembly"
)

// allocBatch is the number of transmit frames that the engine requests from the link at a time.
const allocBatch = 32

// Engine runs the protocol over one link. It has no goroutine of its own: it works only within calls.
//
// One goroutine at a time owns an engine, from TryOwn to Disown. Any goroutine may call Ring, Index, Link and the
// methods of Token. Every other method needs ownership.
type Engine struct {
	host *Host
	link link.Link
	Token
	linkLimits

	now    Time // argument of the current Poll
	table  connTable
	timers timers
	buffers
	admission
	replyLimits
	sched scheduler
	acks  []*Conn  // connections that may have to send an Ack
	dirty []*Queue // queues with completions that are not published yet
	stats Stats
	doorbells
	suspension  suspension
	portReports portReports
	memoryAccess
	forwarding
}

// linkLimits holds the capabilities of the engine's link.
type linkLimits struct {
	caps        link.Caps
	index       int    // index of the engine on its host
	maxPacket   int    // largest packet in bytes, sent or received, header to trailer
	rxWindow    uint16 // receive window of each connection, in packets
	udpPort     uint16
	portFlag    proto.Flags // SourcePort or 0; set in every packet of a connection
	zeroCopyMin int         // least bytes that are sent from link memory without a copy
}

// buffers are the frames that the engine holds.
type buffers struct {
	rx         []link.Buf
	toFree     []link.Buf // received frames that are freed at the end of the batch
	heldFrames int        // number of received frames that early packets occupy
	earlyLeft  int        // number of early packets that may still be consumed (see takeEarly)
	tables     reassembly.Pool
	frames     []link.Buf // empty transmit frames
	tx         []link.Buf // frames of built packets that the link does not have yet
	sealing
}

func newEngine(h *Host, l link.Link, index int, now Time) *Engine {
	caps := l.Caps()
	segs := max(caps.Segments, 1)
	e := &Engine{host: h, link: l, now: now}
	e.caps, e.index = caps, index
	e.timers = newTimers(now, e.timerDue, e.tickDue, e.expire)
	e.admission = newAdmission()
	e.replyLimits = replyLimits{newReplyLimiter(h.secret), newReplyTime(h), newShedding(l)}
	e.buffers = buffers{
		rx:     make([]link.Buf, maxReceive+segs),
		toFree: make([]link.Buf, 0, maxReceive+segs+caps.RxFrames),
		frames: make([]link.Buf, 0, 2*(allocBatch+segs)),
		tx:     make([]link.Buf, 0, maxTransmit+segs),
	}
	e.table = connTable{engine: uint32(h.firstEngine + index), firstGen: h.random32() % genMask}
	e.udpPort = l.Local().Port()
	if caps.SourcePort {
		e.portFlag = proto.SourcePort
	}
	e.maxPacket = caps.MaxPayload
	if segs > 1 { // a chunk header must lie in one frame, so some bytes at the end of a frame may stay unused
		e.maxPacket = min(e.maxPacket, segs*(caps.FrameSize-proto.MaxChunkSize))
	} else {
		e.maxPacket = min(e.maxPacket, caps.FrameSize)
	}
	e.rxWindow = receiveWindow(&caps, e.maxPacket)
	e.zeroCopyMin = math.MaxInt
	if len(caps.Memory) > 0 {
		e.zeroCopyMin = zeroCopyBlocks * caps.Block
	}
	e.portReports.link, _ = l.(link.Reporter)
	e.sched = newScheduler()
	if h.security != nil {
		e.sealing = newSealing(e.maxPacket, &caps)
	}
	return e
}

// Index returns the engine's index on its host.
func (e *Engine) Index() int { return e.index }

// Poll does all work that is due: it receives packets, runs timers, takes in posts, sends data and sends
// acknowledgements. It reports whether packets arrived or left. Poll never blocks. It allocates only to set up
// connections.
func (e *Engine) Poll(now Time) bool {
	e.mustOwn()
	e.sched.startPoll(now.Sub(e.now))
	e.detectSuspend(now)
	e.now = now
	e.shed.check(now)
	e.stats.Polls++
	sent := e.stats.TxPackets
	n := e.receive()
	n += e.takeIncoming()
	if e.portReports.link != nil {
		e.takePortReports()
	}
	if !e.catchingUp(n) {
		e.timers.run(now)
	}
	if e.suspension.toAck > 0 {
		e.ackAllPeers()
	}
	e.checkWaits()
	if e.rings.Load() != 0 {
		e.answerDoorbells()
	}
	e.transmit()
	e.acknowledge()
	e.flush()
	e.publish()
	e.sched.lastPackets = n + int(e.stats.TxPackets-sent)
	busy := e.sched.lastPackets > 0
	if !busy {
		e.stats.EmptyPolls++
	}
	e.allowFaults()
	return busy
}

// takeIncoming handles what other goroutines have given to the engine: packets of its connections, and results of jobs. It
// returns 0 if there was nothing.
func (e *Engine) takeIncoming() (n int) {
	if e.incoming.waiting() > 0 {
		e.takeForwarded()
		n++
	}
	if e.secure {
		n += e.takeResults()
	}
	return n
}

// Next returns when Poll must be called again if no packet arrives: the time of the last Poll if work is left.
func (e *Engine) Next() Time {
	e.mustOwn()
	if !e.sched.empty() || !e.sched.due.empty() || len(e.acks) > 0 || len(e.dirty) > 0 || e.rings.Load() != 0 || e.incoming.waiting() > 0 ||
		e.secure && e.results.waiting() {
		return e.now
	}
	next := e.portReports.next(e.now)
	if e.suspension.toAck > 0 {
		next = e.suspension.nextAck
	}
	if len(e.waits) > 0 {
		next = min(next, e.now.Add(windowRetry))
	}
	if at, ok := e.timers.next(); ok {
		next = min(next, at)
	}
	return next
}

// Kick takes in the requests and receives that were posted on c. It returns two hints:
//   - If poll is true, the caller should call Poll now. Otherwise the posts leave with a later Poll, together with
//     other posts.
//   - If active is true, the consumer will probably poll again soon, because it has taken completions from a queue of c
//     since Kick last checked that queue.
func (e *Engine) Kick(c *Conn) (poll, active bool) {
	e.mustOwn()
	if !e.takePosts(c) || e.sched.deferPost(c) {
		return false, false
	}
	return true, c.consumed()
}

// takePosts takes in what was posted on c. It reports whether a Poll now would have work because of it.
func (e *Engine) takePosts(c *Conn) bool {
	switch c.State() {
	case Connecting, Established, Draining:
		if c.eng != e || !c.alive() {
			return false
		}
		e.sched.addPosts(c.sq.count())
		c.grantCredit()
		c.schedule()
		return !e.sched.ready.empty() || e.sched.mayPartial() || c.ack.immediate || len(e.dirty) > 0
	case Closed:
		c.flushWork(StatusFlushed)
		return len(e.dirty) > 0
	default:
		return false
	}
}

// publish makes the completions of this Poll visible to the consumers.
func (e *Engine) publish() {
	for i, q := range e.dirty {
		q.publish()
		e.dirty[i] = nil
	}
	e.dirty = e.dirty[:0]
}

// Connections returns the number of connections, including those that linger, without abandoned attempts.
func (e *Engine) Connections() int {
	e.mustOwn()
	return e.table.usedSlots - e.table.abandoned
}

// Close drops all connections and returns every frame to the link. The caller has ended the connections before.
func (e *Engine) Close() {
	e.mustOwn()
	e.flush()
	for i := range e.table.slots {
		if c := e.table.slots[i].conn; c != nil {
			c.drop()
		} else if l := e.table.slots[i].linger; l != nil {
			e.endLinger(int32(i), l)
		}
	}
	e.endHandshakes()
	e.flush() // the Rejects need their paths, which forgetAllRejected releases
	e.forgetAllRejected()
	e.endWaits(true)
	e.publish()
	e.link.Free(e.toFree)
	e.toFree = e.toFree[:0]
	e.link.Free(e.frames)
	e.frames = e.frames[:0]
}
