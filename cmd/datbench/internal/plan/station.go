package plan

import "net/netip"

// Kinds of traffic.
const (
	KindDAT = "dat"
	KindRaw = "raw"
	KindTCP = "tcp"
)

// Station is the configuration of one end: all that is needed to open it.
type Station struct {
	Kind string `json:"kind"`
	// IA is the provider's name, such as "xdp:eth0"; for kindDAT.
	IA string `json:"ia,omitempty"`
	// Engine and Interface are for kindRaw.
	Engine    string `json:"engine,omitempty"`
	Interface string `json:"interface,omitempty"`
	// PeerMAC is the Ethernet address of the peer, for kindRaw.
	PeerMAC string `json:"peer_mac,omitempty"`
	// Local and Peer are the two addresses. Port is the UDP port of kindDAT and kindRaw.
	Local netip.Addr `json:"local"`
	Peer  netip.Addr `json:"peer"`
	Port  uint16     `json:"port"`
	// MTU of the link, for the rows that must know it.
	MTU int `json:"mtu"`
	// CPUs are those that the measuring thread of kindDAT may run on; any if empty.
	CPUs CPUList `json:"cpus,omitempty"`
	// Realtime is whether the target's measuring thread of kindDAT goes before others; the initiator's is the row's.
	Realtime bool `json:"realtime,omitempty"`
	// Impair is done to what is received, by kindDAT and kindTCP; empty for nothing.
	Impair string `json:"impair,omitempty"`
}
