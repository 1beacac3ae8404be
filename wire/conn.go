package wire

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/congestion"
	"github.com/datxdp/datxdp/wire/internal/pmtu"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/reassembly"
	"github.com/datxdp/datxdp/wire/internal/recovery"
	"github.com/datxdp/datxdp/wire/internal/rtt"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// maxOperation is the largest number of bytes that one operation moves.
const maxOperation = 1<<31 - 1

// State is the state of a connection.
type State uint32

// States of a connection.
const (
	Idle       State = iota
	Connecting       // Connect sent
	Accepting        // Accept sent
	Established
	Draining // graceful disconnect; requests are outstanding
	Closed   // ended; Reset makes it Idle
)

var stateNames = [...]string{"idle", "connecting", "accepting", "established", "draining", "closed"}

// String returns the state in one word.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "?"
}

// ConnConfig holds the attributes of a connection.
type ConnConfig struct {
	User any // for the consumer; see Conn.User
	Zone uint32
	// MaxRecv and MaxRequest are the depths of the work queues in entries. MaxRecvIOV and MaxRequestIOV bound the
	// segments of one entry.
	MaxRecv, MaxRequest       int
	MaxRecvIOV, MaxRequestIOV int
	// MaxReadIOV and MaxWriteIOV bound the segments of one RDMA read and one RDMA write. 0 means MaxRequestIOV.
	MaxReadIOV, MaxWriteIOV int
	// MaxMessage and MaxRDMA are the largest message and the largest RDMA operation in bytes; 0 means 2^31-1.
	MaxMessage, MaxRDMA uint32
	// ReadIn bounds the RDMA reads that this side serves at a time. ReadOut bounds this side's unfinished RDMA reads.
	ReadIn, ReadOut int
	// NoCredit: this side promises the peer no receives, because other connections take the same receives. A message
	// that finds no receive is answered with receiver not ready (RNR), and the peer sends it again.
	NoCredit bool
	// SRQ is the shared receive queue of the connection. A connection with SRQ gives no credit, as if NoCredit were
	// set, and PostRecv on it fails. The engine's owner calls Notice for each event of the queue. Notice must not
	// block.
	SRQ    *SharedQueue
	Notice func(Notice)
}

// CompletionQueues are the queues for a connection's completions. The completions for a nil queue are discarded. All
// queues belong to the engine of the connection.
type CompletionQueues struct {
	Recv, Request, Connect *Queue
	// Solicited suppresses the notification of a successful receive unless the peer's send was Solicited.
	Solicited bool
}

// Conn is one end of a reliable connection, with its two work queues.
//
// Any goroutine may call the Post methods, State, Idle and PeerPrivate. The other methods need ownership of the engine.
//
// A Conn is made of parts that are embedded by value. Each part has its own type, comment and tests
// (docs/decisions/0011-a-connection-made-of-parts.md).
type Conn struct {
	// User belongs to the consumer; the engine does not read it.
	User any

	host  *Host
	state atomic.Uint32
	attributes
	workQueues

	// The fields below belong to the engine's owner.
	eng *Engine
	identity
	setup
	liveness

	sent  recovery.Sent         // sent packets that are not acknowledged
	rtt   rtt.Estimator         // round-trip time of the path
	cc    congestion.Controller // congestion window and pacer
	rtx   rtxTimer              // retransmission timer
	pmtu  pmtu.Search           // path MTU
	epoch epochChange           // change to a smaller packet size
	flow  flowControl           // credit, and receiver not ready
	turn  turn                  // place in the transmit scheduler
	recv  receiver              // incoming packets and messages
	ack   delayedAck            // delayed acknowledgement
	rdma
}

// attributes are the settings of ConnConfig.
type attributes struct {
	zone                atomic.Uint32
	maxMessage, maxRDMA atomic.Uint32 // bytes
	readIOV, writeIOV   atomic.Int32  // segments
	readIn, readOut     uint16        // RDMA reads served at a time, and wanted outstanding
	noCredit            bool
	zoneChanged         bool   // the zone has changed while receives were posted
	peerRights          Rights // of the peer to the memory of this host, at most
}

// workQueues are the send queue and the receive queue, with the queues for their completions.
type workQueues struct {
	lowCredit   atomic.Bool // the peer will soon run out of credit, so a posted receive is worth an Ack
	rung        atomic.Bool // the connection is in the engine's list of doorbells
	sq          sendQueue
	rq          recvQueue
	srq         *sharedRecv // replaces rq if the connection has a shared queue, otherwise nil
	completions CompletionQueues
}

// identity holds the IDs, tags and keys of the connection and the address of the peer.
type identity struct {
	path     link.Path
	slot     int32                  // slot in the engine's connection table
	cid      uint32                 // our connection ID
	tag      uint32                 // verification tag of the peer's packets
	peerCID  uint32                 // the peer's connection ID
	peerTag  uint32                 // verification tag of our packets
	peerAddr netip.Addr             // address of the peer, normalised by addressOf
	peerData atomic.Pointer[[]byte] // private data of the peer's Accept or Reject
	keys     *keys                  // secure mode; nil in plaintext mode, and until the peer's Hello has come
	permit   *permit                // secure mode; nil in plaintext mode
}

// setup is the state of the handshake. It also holds the reason why the connection ended.
type setup struct {
	dial         dialState
	req          *Request // passive side: the accepted request
	openedAt     Time     // when Connect or Accept was called
	peerKnown    bool     // the peer's Hello has come
	readyPending bool     // active side: the first packet has to carry OpReady
	breakReason  BreakReason
	broke        atomic.Uint32 // 1 + breakReason since the connection broke, otherwise 0
}

// liveness holds the time at which the peer was last heard, and the deadlines that depend on it.
type liveness struct {
	lastHeard  Time // when the peer's last packet came
	lastAsked  Time // when the last keep-alive or request for credit left
	timerAt    Time // when the connection's timer fires; never: not armed
	unanswered int  // timeouts and requests for an answer since the peer's last packet
	challenge  challengeAck
}

// rdma is the state of RDMA reads and atomics, both those outstanding at the peer and those that this side serves.
type rdma struct {
	readsAllowed int32     // reads and atomics that the peer serves at a time
	readsOut     int32     // reads and atomics outstanding at the peer
	readAt       Time      // last progress of the outstanding reads
	resp         responder // the peer's reads and atomics
}

// receiver is the state of incoming packets and messages.
type receiver struct {
	held    earlyFrames // frames that early occupies
	nextPSN seq.Num     // PSN expected next
	epoch   proto.Flags // epoch of the peer's packets: proto.Epoch or 0
	// notReady is true if the packet with PSN nextPSN has arrived and found no receive. consumed is how many bytes of
	// that packet's body are already consumed, and consumedOps how many operations of the peer end in them.
	notReady    bool
	consumedOps uint16
	consumed    int32
	newestTS    uint32           // latest time stamp of a packet of this epoch
	early       reassembly.Queue // packets that came before their turn
	echo        echo
	target      targetCache

	msn    seq.Num // messages received
	off    uint32  // bytes received of the current message
	immOff uint32  // bytes received of the current write with immediate data

	answered seq.Num // number of messages received when this side last began a message
}

// echo holds two values that this side's headers return to the peer: the time stamp of the newest packet that came in
// order (RFC 7323 §4.3), and the number of congestion marks received (RFC 3168).
type echo struct {
	stamp     uint32
	ce        uint16 // congestion marks received; wraps
	arrivedAt Time   // when that packet came
}

// targetCache holds the memory that the peer's last RDMA operation named. The next one usually names the same memory.
type targetCache struct {
	region  *Region  // last region found by its remote key
	binding *binding // last window found by its remote key
}

// NewConn makes an Idle connection. Receives may be posted to it immediately.
func (h *Host) NewConn(cfg ConnConfig) *Conn {
	c := &Conn{User: cfg.User, host: h}
	c.noCredit, c.slot = cfg.NoCredit, none
	if cfg.SRQ != nil {
		c.noCredit, c.srq = true, cfg.SRQ.newConn(cfg.Notice)
		cfg.MaxRecv, cfg.MaxRecvIOV = 0, 0
	}
	cfg.setDefaults()
	c.rq.init(cfg.MaxRecv, cfg.MaxRecvIOV, cfg.MaxRecvIOV)
	c.sq.init(cfg.MaxRequest, cfg.MaxRequestIOV, cfg.requestSegs())
	c.sq.args = make([]operands, len(c.sq.slots))
	c.configure(&cfg)
	return c
}

// State returns the state of the connection.
func (c *Conn) State() State { return State(c.state.Load()) }

// Broke returns the reason why the connection broke, and whether it did. It knows before completions tell of the end. Any
// goroutine may call it.
func (c *Conn) Broke() (BreakReason, bool) {
	n := c.broke.Load()
	return BreakReason(n - 1), n != 0
}

// Idle reports whether no receive is outstanding (recv), and whether no request is outstanding (request).
func (c *Conn) Idle() (recv, request bool) {
	n, _ := c.Receiving()
	return n == 0, c.sq.empty()
}

// PeerPrivate returns the private data of the peer's Accept or Reject, or nil if none has come. The bytes never change.
func (c *Conn) PeerPrivate() []byte {
	if p := c.peerData.Load(); p != nil {
		return *p
	}
	return nil
}

// setState sets the state. It locks the send queue, so that no request is posted in a state that refuses it.
func (c *Conn) setState(s State) {
	c.sq.mu.Lock()
	c.state.Store(uint32(s))
	c.sq.mu.Unlock()
}

// attach adds an Idle connection to an engine: it reserves a slot and resets the protocol state.
func (c *Conn) attach(e *Engine, path link.Path, s CompletionQueues, now Time) error {
	slot, cid, err := e.table.takeSlot(c)
	if err != nil {
		return err
	}
	c.eng, c.path, c.slot, c.cid, c.completions = e, path, slot, cid, s
	c.tag, c.peerCID, c.peerTag = c.host.newTag(), 0, 0
	c.req, c.peerKnown, c.readyPending, c.keys = nil, false, false, nil
	c.sq.restart()
	c.rq.nextRecv = seq.Num(c.rq.doneCount.Load())
	psn := seq.Num(c.host.random32())
	c.sent.Restart(psn)
	c.cc = congestion.New(psn, e.caps.HostDelay)
	c.rtt, c.rtx, c.flow, c.epoch = rtt.Estimator{}, rtxTimer{}, flowControl{}, epochChange{}
	c.recv = receiver{early: reassembly.New(&e.tables)}
	c.ack.reset()
	c.readsOut, c.resp = 0, responder{}
	c.permit, c.peerRights = nil, fullRights
	c.challenge, c.breakReason, c.openedAt = challengeAck{}, 0, now
	c.broke.Store(0)
	c.dropForeignSegments()
	c.timerAt, c.lastHeard, c.lastAsked, c.unanswered = never, now, now, 0
	c.pmtu = pmtu.New(min(e.link.PathMTU(path), e.maxPacket))
	c.peerData.Store(nil)
	return nil
}

// hello returns the Hello of this side for a handshake packet.
func (c *Conn) hello(private []byte) proto.Hello {
	hi := proto.Hello{CID: c.cid, Tag: c.tag, MTU: uint32(c.eng.maxPacket), Window: c.eng.rxWindow,
		ReadIn: c.readIn, ReadOut: c.readOut, Private: private}
	if c.eng.portFlag == 0 { // the source port of a packet does not name the port, which NAT could not translate in the Hello
		hi.UDPPort = c.eng.udpPort
	}
	if c.eng.caps.NoGroups {
		hi.Capabilities |= proto.NoGroups
	}
	return hi
}

// setPeer stores the contents of the peer's Hello and the peer's first PSN.
func (c *Conn) setPeer(h *proto.Header, hi *proto.Hello) {
	c.peerCID, c.peerTag, c.peerKnown = hi.CID, hi.Tag, true
	c.noteAnswer()
	c.sent.Limit = min(maxWindow, int(hi.Window))
	c.cc.SetLargest(c.sent.Limit)
	c.host.peers.add(c.peerKey(), peerName{c.cid, c.eng.portReports.destination(c.path)})
	c.pmtu.Agree(int(min(hi.MTU, 1<<16-1)))
	c.cc.SetPacketSize(c.pmtu.Size)
	if g, ok := c.eng.link.(link.Grouper); ok && hi.Capabilities&proto.NoGroups != 0 {
		g.SendSingly(c.path)
		c.flow.single = true
	}
	c.recv.newestTS = h.TS
	c.readsAllowed = int32(min(c.readOut, hi.ReadIn))
	c.resp.init(int(c.readIn))
	c.recv.nextPSN = h.PSN
	c.takeCredit(h)
	if o := c.dial.opening; o != nil && o.secrets != nil {
		c.makeKeys(o.secrets, hi.MTU)
	}
}

// emit publishes earlier completions and then a connection event, so that the consumer sees them in this order.
func (c *Conn) emit(k Kind) {
	e := c.eng
	e.publish()
	c.completions.Connect.push(e, &Completion{Conn: c, Kind: k, Data: uint32(c.breakReason)})
	e.publish()
}

// grantableCredit returns the number of messages that the peer may send, counted from the beginning of the connection.
func (c *Conn) grantableCredit() seq.Num {
	return c.recv.msn + seq.Num(c.rq.postedCount.Load()) - c.rq.nextRecv
}

// alive reports whether the connection exchanges data packets.
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

// establish ends the handshake: it reports KindEstablished and starts the search for the path MTU.
func (c *Conn) establish() {
	c.setState(Established)
	c.endOpening()
	if c.req != nil {
		c.eng.leaveHalfOpen(c.req)
	}
	c.setDeadline(c.eng.now.Add(c.host.limits.KeepAlive))
	c.emit(KindEstablished)
	if c.req != nil { // the peer may close at once: do not probe before it sends more
		c.pmtu.HoldBack(c.eng.now)
	}
	c.searchMTU()
}

// silence returns the time since the peer's last packet.
func (c *Conn) silence(now Time) time.Duration { return now.Sub(c.lastHeard) }
