package dat

import (
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// ConnState is the state of a connection in the wire protocol. An endpoint has a state of another type, EPState, which
// has more values.
type ConnState uint8

// States of a connection.
const (
	ConnIdle        ConnState = 0
	ConnConnecting  ConnState = 1 // the connection request was sent or is about to be sent
	ConnAccepting   ConnState = 2 // this side has accepted; the peer has not confirmed yet
	ConnEstablished ConnState = 3
	ConnDraining    ConnState = 4 // after a graceful disconnect, until all outstanding requests have completed
	ConnClosed      ConnState = 5 // the connection has ended; the peer has not confirmed the end yet
	numConnStates             = ConnClosed + 1
)

var connStateNames = [numConnStates]string{"idle", "connecting", "accepting", "established", "draining", "closed"}

// String returns one word, the same as in metrics.
func (s ConnState) String() string {
	name := ""
	if s < numConnStates {
		name = connStateNames[s]
	}
	return enumName(name, "ConnState", s)
}

// MarshalText returns String.
func (s ConnState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ConnInfo is a snapshot of one connection: a row of IA.Connections. PSN is the packet sequence number, which counts
// the packets of one direction.
type ConnInfo struct {
	Engine  int // index of the connection's engine; an adapter has one engine for each receive queue
	State   ConnState
	Peer    netip.Addr
	Qual    ConnQual      // the connection qualifier in the connection request
	Passive bool          // the peer sent the connection request
	OwnKey  PublicKey     // key of this host in secure mode, once the handshake is done; zero with a shared secret
	PeerKey PublicKey     // the same of the peer
	Age     time.Duration // since Connect or Accept
	Silence time.Duration // since the last packet of the peer
	MTU     int           // largest packet in bytes, protocol header and trailer included

	// Sending.
	SendOldest  uint32        // PSN of the oldest unacknowledged packet
	SendNext    uint32        // PSN of the next new packet
	Window      float64       // congestion window in packets; if it is below 1, packets are paced
	InFlight    int           // packets in the network (pipe, RFC 6675 §2)
	Lost        int           // packets declared lost and not yet sent again
	Timeouts    int           // consecutive retransmission timeouts
	Retransmits uint64        // packets sent again since the connection began
	RTT, RTTVar time.Duration // smoothed round trip and its variance (RFC 6298 §2)
	RTO         time.Duration // current retransmission timeout
	Requests    int           // outstanding requests
	Unsent      int           // bytes of requests not yet sent, chunk headers included
	Credits     int           // messages that the peer has promised to take; -1 if the peer gives no credits
	Starved     bool          // a message waits for the peer to post a receive

	// Receiving.
	RecvNext uint32 // PSN of the next packet in order
	Early    int    // early packets held, because an earlier packet or a receive is missing
	Receives int    // outstanding receives; with a shared receive queue, receives that the endpoint has taken from it
	Granted  int    // messages that this side has promised to take; -1 if this side gives no credits
}

func connInfo(c *wire.ConnInfo) ConnInfo {
	return ConnInfo{Engine: c.Engine, State: ConnState(c.State), Peer: c.Peer, Qual: ConnQual(c.Qual), Passive: c.Passive,
		OwnKey: c.OwnKey, PeerKey: c.PeerKey, Age: c.Age, Silence: c.Silence, MTU: c.MTU,
		SendOldest: c.SendOldest, SendNext: c.SendNext, Window: c.Window, InFlight: c.InFlight, Lost: c.Lost,
		Timeouts: c.Timeouts, Retransmits: c.Retransmits, RTT: c.RTT, RTTVar: c.RTTVar, RTO: c.RTO,
		Requests: c.Requests, Unsent: c.Unsent, Credits: c.Credits, Starved: c.Starved,
		RecvNext: c.RecvNext, Early: c.Early, Receives: c.Receives, Granted: c.Granted}
}
