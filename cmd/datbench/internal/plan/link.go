package plan

import (
	"net/netip"

	"github.com/datxdp/datxdp/internal/result"
)

// Transports.
const (
	TransportAuto = "auto"
	TransportXDP  = result.TransportXDP
	TransportUDP  = result.TransportUDP
	transportTCP  = result.TransportTCP
)

// Link is the network between the two ends of a job.
type Link struct {
	// Name describes the link to a reader. Transport is the transport of DAT over it.
	Name, Transport string
	Target          End
	Initiator       End
	// MTU is the MTU of the link if it is fixed; 0 if each phase sets the MTU.
	MTU int
}

// End is one side of a link.
type End struct {
	IA, Interface, MAC string
	Addr               netip.Addr
	// Key and Peers are the files of adapters in secure mode.
	Key, Peers string
}

// station returns the station of one end.
func (l Link) station(kind string, local, peer End, cfg *Options) Station {
	return Station{
		Kind: kind, IA: local.IA, Interface: local.Interface, PeerMAC: peer.MAC,
		Local: local.Addr, Peer: peer.Addr, Port: cfg.Port, MTU: l.MTU,
	}
}

// overUDP returns the same link with adapters over kernel UDP.
func (l Link) overUDP() Link {
	l.Transport = TransportUDP
	for _, e := range []*End{&l.Target, &l.Initiator} {
		e.IA = TransportUDP + ":" + e.Addr.String()
	}
	return l
}

// secured returns the same link with adapters in secure mode.
func (l Link) secured() Link {
	for _, e := range []*End{&l.Target, &l.Initiator} {
		e.IA = withKeys(e.IA, e.Key, e.Peers)
	}
	return l
}

// Phase returns a phase of one kind of traffic. Its rows get the MTU.
func (l Link) Phase(cfg *Options, kind, engine string, mtu int, rows ...Spec) Phase {
	ph := Phase{MTU: mtu, Rows: rows}
	ph.Target = l.station(kind, l.Target, l.Initiator, cfg)
	ph.Initiator = l.station(kind, l.Initiator, l.Target, cfg)
	if mtu == 0 {
		mtu = l.MTU
	}
	ph.Target.Engine, ph.Target.MTU = engine, mtu
	ph.Initiator.Engine, ph.Initiator.MTU = engine, mtu
	for i := range ph.Rows {
		ph.Rows[i].MTU = mtu
	}
	return ph
}
