package wire

import (
	"math"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/wheel"
)

// allocBatch is how many transmit frames are taken from the link at once.
const allocBatch = 32

// Engine runs the protocol over one link. It is driven: nothing happens between calls.
//
// One goroutine at a time owns an engine, between TryOwn and Disown. Ring, Index, Link and the methods of Token may be
// called by any goroutine, all others by the owner only.
type Engine struct {
	host *Host
	link link.Link
	Token
	linkLimits

	now     Time // of this Poll
	arrived Time // last Poll that received anything
	table   connTable
	timers
	buffers
	admission
	replyLimit replyLimiter
	sched      scheduler
	acks       []*Conn  // connections that may owe an acknowledgement
	dirty      []*Queue // completion queues with completions that are not visible yet
	stats      Stats
	doorbells
	suspension  suspension
	portReports portReports
	faults
	forwarding
}

// linkLimits are what the engine's link can do.
type linkLimits struct {
	caps        link.Caps
	index       int // of the engine on its host
	maxPacket   int // largest packet we send or take, header to trailer
	udpPort     uint16
	portFlag    proto.Flags // of every packet of a connection
	zeroCopyMin int         // fewest bytes that are sent from the link's memory without a copy
}

// timers are one for each slot of the connection table.
type timers struct {
	wheel *wheel.Wheel
	fire  func(slot int32)
}

// buffers are the frames that the engine has from the link.
type buffers struct {
	rx     []link.Buf
	drop   []link.Buf // received frames to be freed at the end of the batch
	held   int        // received frames of packets that came early
	holes  holes
	frames []link.Buf // empty transmit frames
	tx     []link.Buf // packets built and not yet handed to the link
}

func newEngine(h *Host, l link.Link, index int, now Time) *Engine {
	caps := l.Caps()
	segs := max(caps.Segments, 1)
	e := &Engine{host: h, link: l, now: now}
	e.caps, e.index = caps, index
	e.wheel = wheel.New(int64(now))
	e.admission = newAdmission()
	e.replyLimit = newReplyLimiter(h.secret)
	e.buffers = buffers{
		rx:     make([]link.Buf, maxReceive+segs),
		drop:   make([]link.Buf, 0, maxReceive+segs+caps.RxFrames),
		frames: make([]link.Buf, 0, 2*(allocBatch+segs)),
		tx:     make([]link.Buf, 0, maxTransmit+segs),
	}
	e.table = connTable{engine: uint32(index)}
	e.udpPort = l.Local().Port()
	if caps.SourcePort {
		e.portFlag = proto.SourcePort
	}
	e.maxPacket = caps.MaxPayload
	if segs > 1 { // a header is never cut, which may leave some bytes of a frame unused
		e.maxPacket = min(e.maxPacket, segs*(caps.FrameSize-proto.MaxChunkSize))
	} else {
		e.maxPacket = min(e.maxPacket, caps.FrameSize)
	}
	e.zeroCopyMin = math.MaxInt
	if len(caps.Memory) > 0 {
		e.zeroCopyMin = zeroCopyBlocks * caps.Block
	}
	e.portReports.link, _ = l.(link.Reporter)
	e.sched.bucket = bucketSize * tokenTime
	e.fire = func(slot int32) { e.expire(slot) }
	return e
}

// Index is the engine's number on its host.
func (e *Engine) Index() int { return e.index }

// Link is the engine's link.
func (e *Engine) Link() link.Link { return e.link }

// Poll does everything there is to do now: it receives, runs timers, looks at what was posted,
// sends and acknowledges. It reports whether packets arrived or left. It neither blocks nor
// allocates, apart from connection set-up.
func (e *Engine) Poll(now Time) bool {
	e.mustOwn()
	e.sched.polled(now.Sub(e.now))
	e.detectSuspend(now)
	e.now = now
	e.stats.Polls++
	sent := e.stats.TxPackets
	n := e.receive()
	if n > 0 {
		e.arrived = now
	}
	if e.incoming.waiting() > 0 {
		e.takeForwarded()
		n++
	}
	if e.portReports.link != nil {
		e.takePortReports()
	}
	if !e.catchingUp(n) {
		e.wheel.Advance(int64(now), maxTimers, e.fire)
	}
	if e.suspension.toAck > 0 {
		e.ackAllPeers()
	}
	if e.rings.Load() != 0 {
		e.answerDoorbells()
	}
	e.transmit()
	e.acknowledge()
	e.flush()
	e.publish()
	e.sched.packets = n + int(e.stats.TxPackets-sent)
	busy := e.sched.packets > 0
	if !busy {
		e.stats.EmptyPolls++
	}
	e.allowFaults()
	return busy
}

// Next is the time by which Poll should be called again though no packet arrives. It is the time
// of the last Poll when there is something left to do.
func (e *Engine) Next() Time {
	e.mustOwn()
	if !e.sched.empty() || len(e.acks) > 0 || e.rings.Load() != 0 || e.incoming.waiting() > 0 {
		return e.now
	}
	next := e.portReports.next(e.now)
	if e.suspension.toAck > 0 {
		next = e.suspension.nextAck
	}
	if at, ok := e.wheel.Next(); ok {
		next = min(next, Time(at))
	}
	return next
}

// Kick takes in what was posted on c. poll reports that a Poll has something to do now. Otherwise what was posted leaves
// with a later one: with others, see scheduler. active reports that a Poll should follow and the consumer of c has taken
// completions since it was reported last, so that it is likely to drive the engine.
func (e *Engine) Kick(c *Conn) (poll, active bool) {
	e.mustOwn()
	if !e.takePosts(c) || e.sched.deferPost(c) {
		return false, false
	}
	return true, c.consumed()
}

// takePosts looks at what was posted on c, and reports whether there is something to do that a Poll does now.
func (e *Engine) takePosts(c *Conn) bool {
	switch c.State() {
	case Connecting, Established, Draining:
		if c.eng != e || !c.alive() {
			return false
		}
		e.sched.posted(c.sq.count())
		c.grantCredit()
		c.schedule()
		return len(e.sched.ready) > 0 || e.sched.mayPartial() || c.ack.now
	case Closed:
		c.flushWork(StatusFlushed)
		return len(e.dirty) > 0
	default:
		return false
	}
}

// publish makes completions visible.
func (e *Engine) publish() {
	for i, q := range e.dirty {
		q.publish()
		e.dirty[i] = nil
	}
	e.dirty = e.dirty[:0]
}

// Connections is the number of connections and lingering ones.
func (e *Engine) Connections() int {
	e.mustOwn()
	return e.table.live
}

// Close gives every frame back. Connections are to be closed by their users before.
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
	e.forgetAllRejected()
	e.publish()
	e.link.Free(e.drop)
	e.drop = e.drop[:0]
	e.link.Free(e.frames)
	e.frames = e.frames[:0]
}
