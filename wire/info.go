package wire

import (
	"net/netip"
	"time"
)

// ConnInfo is a snapshot of a connection. PSNs and packet counts belong to the direction under which they are listed.
type ConnInfo struct {
	Engine  int
	State   State
	Peer    netip.Addr
	Qual    uint64        // connection qualifier of the request
	Passive bool          // this side accepted
	OwnKey  [32]byte      // public key of this side in secure mode, once the handshake is done; 0 with a shared secret
	PeerKey [32]byte      // the same of the peer
	Age     time.Duration // since Connect or Accept
	Silence time.Duration // since the peer's last packet
	MTU     int           // largest packet in bytes, header to trailer

	// Sending.
	SendOldest  uint32  // PSN of the oldest unacknowledged packet
	SendNext    uint32  // PSN of the next new packet
	Window      float64 // congestion window in packets; below 1, packets are paced
	InFlight    int     // packets in the network (RFC 6675 pipe)
	Lost        int     // packets marked lost and not sent again yet
	Timeouts    int     // consecutive retransmission timeouts
	Retransmits uint64  // packets sent again since the connection began
	RTT, RTTVar time.Duration
	RTO         time.Duration // current retransmission timeout
	Requests    int           // outstanding requests
	Unsent      int           // bytes of requests that were not sent yet, chunk headers included
	Credits     int           // messages that the peer has promised to take; -1: the peer gives no credit
	Starved     bool          // a message waits for credit or for a receive of the peer

	// Receiving.
	RecvNext uint32 // PSN expected next
	Early    int    // packets held because an earlier packet is missing, or because no receive is posted
	Receives int    // outstanding receives; with a shared queue, the receives taken from it
	Granted  int    // messages that the peer has credit for; -1: this side gives no credit
}

// inspectSlots bounds the slots of the connection table that one Inspect reads, to a few microseconds of work.
const inspectSlots = 32

// Inspect appends to rows one row for each connection in a part of the connection table. firstSlot is the index of the
// first slot of this part: 0 in the first call, and in each further call the nextSlot of the call before. A negative
// nextSlot means that the end of the table is reached. Inspect may miss a connection that begins or ends between two
// calls. The caller owns the engine.
func (e *Engine) Inspect(now Time, firstSlot int, rows []ConnInfo) (all []ConnInfo, nextSlot int) {
	e.mustOwn()
	end := min(firstSlot+inspectSlots, len(e.table.slots))
	for ; firstSlot < end; firstSlot++ {
		if c := e.table.slots[firstSlot].conn; c != nil {
			rows = append(rows, c.info(now))
		}
	}
	if firstSlot >= len(e.table.slots) {
		firstSlot = -1
	}
	return rows, firstSlot
}

func (c *Conn) info(now Time) ConnInfo {
	s, r := &c.sent, &c.recv
	receives, _ := c.Receiving()
	i := ConnInfo{Engine: c.eng.index, State: c.State(), Peer: c.peerAddr, Qual: c.dial.qual, Passive: c.req != nil,
		Age: max(now.Sub(c.openedAt), 0), Silence: max(c.silence(now), 0), MTU: c.pmtu.Size,
		SendOldest: uint32(s.Una), SendNext: uint32(s.Nxt), Window: c.cc.Window(), InFlight: s.Pipe(),
		Lost: s.Lost(), Timeouts: int(c.rtx.count), Retransmits: s.Retransmits,
		RTT: c.rtt.Smoothed(), RTTVar: c.rtt.Variance(), RTO: c.rto(),
		Requests: int(c.sq.postedCount.Load() - c.sq.doneCount.Load()), Unsent: c.sq.unsent,
		Credits: max(c.flow.creditLimit.Sub(c.sq.msn), 0), Starved: c.flow.stalledSince != 0,
		RecvNext: uint32(r.nextPSN), Early: r.early.Packets(), Receives: receives, Granted: max(c.flow.grantedCredit.Sub(r.msn), 0)}
	if c.keys != nil {
		i.OwnKey, i.PeerKey = c.keys.own, c.keys.peer
	}
	if c.flow.unlimited {
		i.Credits = -1
	}
	if c.noCredit {
		i.Granted = -1
	}
	return i
}
