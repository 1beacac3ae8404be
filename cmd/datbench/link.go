package main

import "net/netip"

// Transports that the main job may be told to use.
const (
	transportAuto = "auto"
	transportXDP  = "xdp"
	transportUDP  = "udp"
	transportTCP  = "tcp"
)

// link is what the main job put between its agents.
type link struct {
	// name says it to a reader; transport says how DAT crosses it.
	name, transport string
	target          end
	initiator       end
	// mtu of the link as it was found, 0 where each phase sets it.
	mtu int
}

// end is one side of a link.
type end struct {
	ia, ifname, mac string
	addr            netip.Addr
}

// station is where an end stands, seen from the other.
func (l link) station(kind string, local, peer end, cfg *options) station {
	return station{
		Kind: kind, IA: local.ia, Interface: local.ifname, PeerMAC: peer.mac,
		Local: local.addr, Peer: peer.addr, Port: cfg.port, MTU: l.mtu,
	}
}

// phase opens both ends for one kind of traffic at one MTU; rows get the MTU.
func (l link) phase(cfg *options, kind, engine string, mtu int, rows ...Spec) phase {
	ph := phase{mtu: mtu, rows: rows}
	ph.target = l.station(kind, l.target, l.initiator, cfg)
	ph.initiator = l.station(kind, l.initiator, l.target, cfg)
	if mtu == 0 {
		mtu = l.mtu
	}
	ph.target.Engine, ph.target.MTU = engine, mtu
	ph.initiator.Engine, ph.initiator.MTU = engine, mtu
	for i := range ph.rows {
		ph.rows[i].MTU = mtu
	}
	return ph
}
