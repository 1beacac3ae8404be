package wire

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/congestion"
	"github.com/datxdp/datxdp/wire/internal/list"
	"github.com/datxdp/datxdp/wire/internal/pmtu"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/reassembly"
	"github.com/datxdp/datxdp/wire/internal/recovery"
	"github.com/datxdp/datxdp/wire/internal/rtt"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// maxOperation is the most bytes one operation moves.
const maxOperation = 1<<31 - 1

// State is where a connection stands.
type State uint32

// States of a connection.
const (
	Idle       State = iota
	Connecting       // Connect sent
	Accepting        // Accept sent
	Established
	Draining // graceful disconnect, requests outstanding
	Closed   // over; Reset makes it Idle
)

var stateNames = [...]string{"idle", "connecting", "accepting", "established", "draining", "closed"}

// String is the state in one word.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "?"
}

// MarshalText is String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ConnConfig is what a connection is made of.
type ConnConfig struct {
	User any // for the consumer; see Conn.User
	Zone uint32
	// Depths of the work queues in requests, and segments of one request.
	MaxRecv, MaxRequest       int
	MaxRecvIOV, MaxRequestIOV int
	// Segments of one RDMA read and of one RDMA write; 0 means MaxRequestIOV.
	MaxReadIOV, MaxWriteIOV int
	// MaxMessage and MaxRDMA bound one operation in bytes; 0 means 2^31-1.
	MaxMessage, MaxRDMA uint32
	// ReadIn and ReadOut bound the RDMA reads served for the peer and outstanding at it.
	ReadIn, ReadOut int
	// NoCredit means that other connections take from the same receives, so that none can be promised to the
	// peer. The peer sends a message again that finds none (receiver not ready).
	NoCredit bool
	// SRQ is where receives are taken from: none can be posted to the connection, and NoCredit is
	// implied. Notice is called by the engine's owner with what becomes of them and must not block.
	SRQ    *SharedQueue
	Notice func(Notice)
}

// CompletionQueues are the queues that a connection's completions go to; nil discards them. They belong to the
// engine that the connection is used with.
type CompletionQueues struct {
	Recv, Request, Connect *Queue
	// Solicited means that a receive is a notification only if the peer's send was Solicited or it failed.
	Solicited bool
}

// Conn is one end of a reliable connection and its two work queues.
//
// Post methods, State, Idle and PeerPrivate may be called by any goroutine. Everything else is the
// engine owner's.
//
// It is made of parts, each with a file and a comment of its own, embedded by value
// (docs/decisions/0011-a-connection-made-of-parts.md). Of its own it has which host and engine it is on, and its state.
type Conn struct {
	// User is the consumer's own; the engine does not look at it.
	User any

	host  *Host
	state atomic.Uint32
	attributes
	workQueues

	// What follows is the engine owner's.
	eng *Engine
	identity
	setup
	liveness

	sent  recovery.Sent         // packets that are not acknowledged
	rtt   rtt.Estimator         // round trip of the path
	cc    congestion.Controller // congestion window and pacer
	rtx   rtxTimer              // retransmission timer
	pmtu  pmtu.Search           // largest packet of the path
	epoch epochChange           // of packets, when the path takes smaller ones
	flow  flowControl           // credit
	turn  turn                  // place in the transmit scheduler
	recv  receiver              // packets and messages that come in
	ack   delayedAck            // when they are acknowledged
	rdma
}

// attributes are what the consumer has asked for.
type attributes struct {
	zone                atomic.Uint32
	maxMessage, maxRDMA atomic.Uint32 // bytes
	readIOV, writeIOV   atomic.Int32  // segments
	readIn, readOut     int           // RDMA reads served, and wanted
	noCredit            bool
	zoneChanged         bool // receives may be posted that are not of the zone
}

// workQueues are where requests and receives are posted, and where their completions go.
type workQueues struct {
	lowCredit   atomic.Bool // the peer is short of receive credits: posting a receive is news
	rung        atomic.Bool // the doorbell waits for the engine
	sq          sendQueue
	rq          recvQueue
	share       *share // of a shared queue, in place of rq; nil without one
	completions CompletionQueues
}

// identity is what a connection is called, and where its peer is.
type identity struct {
	path      link.Path
	slot      int32      // in the engine's table
	cid       uint32     // our name for the connection
	tag       uint32     // in every packet of the peer's
	peerKnown bool       // the peer's Hello is known
	peerCID   uint32     // the peer's name for the connection
	peerTag   uint32     // in every packet of ours
	peerAddr  netip.Addr // where the peer is, of addressOf
	peerData  atomic.Pointer[[]byte]
}

// setup is the handshake, and why a connection ended.
type setup struct {
	dial         dialState
	req          *Request // passive: what was accepted
	opened       Time     // when it was asked for or accepted
	readyPending bool     // active: the packet that takes the connection into use has not left
	why          BreakReason
}

// liveness is when the peer was heard, whether it still has the connection, and when the timer fires.
type liveness struct {
	lastHeard    Time // last packet from the peer
	lastAsked    Time // last question to a silent peer, or for credit
	armed        Time // when the connection's timer fires
	challengeAck challengeAck
}

// rdma is RDMA reads and atomics, those outstanding at the peer and those served for it.
type rdma struct {
	readsAllowed int // granted by the peer
	readsOut     int
	readAt       Time // of the last piece of a read, or since when one is outstanding
	resp         responder
}

// receiver is the packets of the peer that are taken in, and how far its messages have arrived.
type receiver struct {
	hole   list.Node[Conn] // in holes
	next   seq.Num         // next packet expected
	epoch  proto.Flags     // proto.Epoch or 0
	newest uint32          // latest time stamp of a packet of the epoch
	early  reassembly.Queue
	echo   echo
	target targetCache

	msn    seq.Num // messages received
	off    uint32  // bytes of the current message that have arrived
	immOff uint32  // and of the current write with immediate data

	notReady bool // packet next came and found no receive
	skip     int  // chunks of it that were taken in
}

// echo is what the peer is told of its own packets: the time stamp of the newest that came in order (RFC 7323 §4.3), and how
// many were marked by the network (RFC 3168).
type echo struct {
	stamp uint32
	at    Time // when it came
	ce    uint16
}

// targetCache is the memory that the peer named last.
type targetCache struct {
	region  *Region  // last one found by remote key
	binding *binding // last slot of a window found so
}

// NewConn makes a connection that is Idle. Its receives can be posted at once.
func (h *Host) NewConn(cfg ConnConfig) *Conn {
	c := &Conn{User: cfg.User, host: h}
	c.noCredit, c.slot = cfg.NoCredit, none
	if cfg.SRQ != nil {
		c.noCredit, c.share = true, cfg.SRQ.newShare(cfg.Notice)
		cfg.MaxRecv, cfg.MaxRecvIOV = 0, 0
	}
	cfg.setDefaults()
	c.rq.init(cfg.MaxRecv, cfg.MaxRecvIOV, cfg.MaxRecvIOV)
	c.sq.init(cfg.MaxRequest, cfg.MaxRequestIOV, cfg.requestSegs())
	c.sq.args = make([]operands, len(c.sq.slots))
	c.configure(&cfg)
	return c
}

// State is where the connection stands now.
func (c *Conn) State() State { return State(c.state.Load()) }

// Idle reports whether no receive, and whether no request, is outstanding.
func (c *Conn) Idle() (recv, request bool) {
	n, _ := c.Receiving()
	return n == 0, c.sq.empty()
}

// PeerPrivate is the private data that came with the peer's Accept or Reject; nil otherwise. It stays
// valid and unchanged for ever.
func (c *Conn) PeerPrivate() []byte {
	if p := c.peerData.Load(); p != nil {
		return *p
	}
	return nil
}

// setState changes the state under the request lock, so that no request is posted in a state that
// refuses it.
func (c *Conn) setState(s State) {
	c.sq.mu.Lock()
	c.state.Store(uint32(s))
	c.sq.mu.Unlock()
}

// attach gives an idle connection to an engine: a slot, a name, fresh protocol state.
func (c *Conn) attach(e *Engine, path link.Path, s CompletionQueues, now Time) error {
	slot, cid, err := e.table.take(c)
	if err != nil {
		return err
	}
	c.eng, c.path, c.slot, c.cid, c.completions = e, path, slot, cid, s
	c.tag, c.peerCID, c.peerTag = c.host.newTag(), 0, 0
	c.req, c.peerKnown, c.readyPending = nil, false, false
	c.sq.restart()
	c.rq.next = seq.Num(c.rq.done.Load())
	psn := seq.Num(c.host.random32())
	c.sent.Restart(psn)
	c.cc = congestion.New(psn)
	c.rtt, c.rtx, c.flow, c.epoch = rtt.Estimator{}, rtxTimer{}, flowControl{}, epochChange{}
	c.recv = receiver{early: c.recv.early}
	c.ack.sent()
	c.readsOut = 0
	c.resp = responder{}
	c.challengeAck, c.why, c.opened = challengeAck{}, 0, now
	c.dropForeignSegments()
	c.armed, c.lastHeard, c.lastAsked = never, now, now
	c.pmtu = pmtu.New(min(e.link.PathMTU(path), e.maxPacket))
	c.peerData.Store(nil)
	return nil
}

// hello describes this end in a handshake packet.
func (c *Conn) hello(private []byte) proto.Hello {
	return proto.Hello{CID: c.cid, Tag: c.tag, MTU: uint32(c.eng.maxPacket), Window: proto.MaxWindow,
		ReadIn: uint16(c.readIn), ReadOut: uint16(c.readOut), UDPPort: c.eng.udpPort, Private: private}
}

// setPeer takes in what the peer said of itself.
func (c *Conn) setPeer(h *proto.Header, hi *proto.Hello) {
	c.peerCID, c.peerTag, c.peerKnown = hi.CID, hi.Tag, true
	c.sent.Limit = min(maxWindow, int(hi.Window))
	c.host.peers.add(peerKey{c.peerAddr, hi.CID, hi.Tag}, peerName{c.cid, c.eng.portReports.destination(c.path)})
	c.pmtu.Agree(int(min(hi.MTU, 1<<16-1)))
	c.recv.newest = h.TS
	c.readsAllowed = min(c.readOut, int(hi.ReadIn))
	c.resp.init(c.readIn)
	c.recv.next = h.PSN
	c.takeCredit(h)
}

// emit reports a connection event, after everything that was completed before it.
func (c *Conn) emit(k Kind) {
	e := c.eng
	e.publish()
	c.completions.Connect.push(e, &Completion{Conn: c, Kind: k, Data: uint32(c.why)})
	e.publish()
}

// credit is how many messages the peer may send, counted from the first of the connection.
func (c *Conn) credit() seq.Num {
	return c.recv.msn + seq.Num(c.rq.posted.Load()) - c.rq.next
}

// alive reports whether packets with chunks may come and go.
func (c *Conn) alive() bool {
	switch c.State() {
	case Established, Draining:
		return true
	case Connecting:
		return c.peerKnown
	default:
		return false
	}
}

// establish is the end of the handshake.
func (c *Conn) establish() {
	c.setState(Established)
	if c.req != nil {
		c.eng.leaveHalfOpen(c.req)
	}
	c.setDeadline(c.eng.now.Add(c.host.limits.KeepAlive))
	c.emit(KindEstablished)
	if c.req != nil { // the peer's first packet may be its last
		c.pmtu.HoldBack(c.eng.now)
	}
	c.searchMTU(c.pmtu.Unlimited())
}

// quiet is the time since the peer was last heard of.
func (c *Conn) quiet(now Time) time.Duration { return now.Sub(c.lastHeard) }
