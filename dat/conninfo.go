package dat

import (
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// ConnState is where a connection stands. That of an endpoint, which has more states, is EPState.
type ConnState uint8

// States of a connection.
const (
	ConnIdle        ConnState = 0
	ConnConnecting  ConnState = 1 // it was asked for
	ConnAccepting   ConnState = 2 // it was accepted, which the peer has not confirmed yet
	ConnEstablished ConnState = 3
	ConnDraining    ConnState = 4 // graceful disconnect with requests outstanding
	ConnClosed      ConnState = 5 // over, but for what the peer has to confirm
	numConnStates             = ConnClosed + 1
)

var connStateNames = [numConnStates]string{"idle", "connecting", "accepting", "established", "draining", "closed"}

// String is one word, as in metrics.
func (s ConnState) String() string {
	name := ""
	if s < numConnStates {
		name = connStateNames[s]
	}
	return enumName(name, "ConnState", s)
}

// MarshalText is String.
func (s ConnState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ConnInfo is where one connection stands at one moment: a row of IA.Connections. PSNs (packet sequence numbers) and counts
// of packets are those of the direction that is named.
type ConnInfo struct {
	Engine  int // of the adapter, from 0: one for each receive queue
	State   ConnState
	Peer    netip.Addr
	Qual    ConnQual      // that was asked for
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
	Receives int    // outstanding; of a shared receive queue those taken from it
	Granted  int    // messages that the peer has been told it may send; -1: none is promised
}

func connInfo(c *wire.ConnInfo) ConnInfo {
	return ConnInfo{Engine: c.Engine, State: ConnState(c.State), Peer: c.Peer, Qual: ConnQual(c.Qual), Passive: c.Passive,
		Age: c.Age, Silence: c.Silence, MTU: c.MTU,
		SendOldest: c.SendOldest, SendNext: c.SendNext, Window: c.Window, InFlight: c.InFlight, Lost: c.Lost,
		Timeouts: c.Timeouts, Retransmits: c.Retransmits, RTT: c.RTT, RTTVar: c.RTTVar, RTO: c.RTO,
		Requests: c.Requests, Unsent: c.Unsent, Credits: c.Credits, Starved: c.Starved,
		RecvNext: c.RecvNext, Early: c.Early, Receives: c.Receives, Granted: c.Granted}
}
