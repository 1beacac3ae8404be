package wire

import (
	"net/netip"
	"time"
)

// ConnInfo is where one connection stands at one moment. PSNs and counts of packets are those of the
// direction that is named.
type ConnInfo struct {
	Engine  int
	State   State
	Peer    netip.Addr
	Qual    uint64        // the connection qualifier that was asked for
	Passive bool          // the peer asked for the connection
	Age     time.Duration // since it was asked for, or the request was accepted
	Silence time.Duration // since the peer was last heard of
	MTU     int           // largest packet in bytes, header to trailer

	// Sending.
	SendOldest  uint32  // PSN of the oldest packet that is not acknowledged
	SendNext    uint32  // PSN of the next packet
	Window      float64 // packets that may be in the network; below 1 they are spaced out
	InFlight    int     // packets that are there
	Lost        int     // packets taken for lost and not sent again yet
	Timeouts    int     // retransmission timeouts in a row
	Retransmits uint64  // packets sent again since the connection began
	RTT, RTTVar time.Duration
	RTO         time.Duration // retransmission timeout now
	Requests    int           // outstanding
	Unsent      int           // bytes of requests that have not left, chunk headers included
	Credits     int           // messages that the peer can take; -1: it promises none
	Starved     bool          // a message waits for a receive at the peer

	// Receiving.
	RecvNext uint32 // PSN of the packet that is expected
	Early    int    // packets held because an earlier one is missing, or no receive was there
	Receives int    // outstanding; of a shared queue those taken from it
	Granted  int    // messages that the peer has been told it may send; -1: none is promised
}

// inspectSlots bounds the places of the connection table that one Inspect looks at: some microseconds.
const inspectSlots = 32

// Inspect appends a row for each connection of a part of the table that begins at a slot: 0, or next of
// the call before until that is negative. A connection that begins or ends between two calls may be
// missed. It needs ownership.
func (e *Engine) Inspect(now Time, slot int, rows []ConnInfo) (all []ConnInfo, next int) {
	e.mustOwn()
	end := min(slot+inspectSlots, len(e.table.slots))
	for ; slot < end; slot++ {
		if c := e.table.slots[slot].conn; c != nil {
			rows = append(rows, c.info(now))
		}
	}
	if slot >= len(e.table.slots) {
		slot = -1
	}
	return rows, slot
}

func (c *Conn) info(now Time) ConnInfo {
	s, r := &c.sent, &c.recv
	receives, _ := c.Receiving()
	i := ConnInfo{Engine: c.eng.index, State: c.State(), Peer: c.peerAddr, Qual: c.dial.qual, Passive: c.req != nil,
		Age: max(now.Sub(c.opened), 0), Silence: max(c.quiet(now), 0), MTU: c.pmtu.Size,
		SendOldest: uint32(s.Una), SendNext: uint32(s.Nxt), Window: c.cc.Window(), InFlight: s.Pipe(),
		Lost: s.Lost(), Timeouts: c.rtx.count, Retransmits: s.Retransmits,
		RTT: c.rtt.Smoothed(), RTTVar: c.rtt.Variance(), RTO: c.rto(),
		Requests: int(c.sq.posted.Load() - c.sq.done.Load()), Unsent: c.sq.unsent,
		Credits: max(c.flow.limit.Sub(c.sq.msn), 0), Starved: c.flow.outSince != 0,
		RecvNext: uint32(r.next), Early: r.early.Packets(), Receives: receives, Granted: max(c.flow.granted.Sub(r.msn), 0)}
	if c.flow.unlimited {
		i.Credits = -1
	}
	if c.noCredit {
		i.Granted = -1
	}
	return i
}
