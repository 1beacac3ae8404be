package plan

import "net/netip"

// Kinds of traffic.
const (
	KindDAT = "dat"
	KindRaw = "raw"
	KindTCP = "tcp"
	// KindTCPShared is kernel TCP over interfaces on which an adapter is open.
	KindTCPShared = "tcp_shared"
	// KindStream is for rows of package stream, which run over DAT.
	KindStream = "stream"
)

// Station is the configuration of one end: all values that are needed to open it.
type Station struct {
	Kind string `json:"kind"`
	// IA is the provider's name, such as "xdp:eth0"; for KindDAT, KindStream and KindTCPShared.
	IA string `json:"ia,omitempty"`
	// Engine and Interface are for KindRaw.
	Engine    string `json:"engine,omitempty"`
	Interface string `json:"interface,omitempty"`
	// PeerMAC is the Ethernet address of the peer, for KindRaw.
	PeerMAC string `json:"peer_mac,omitempty"`
	// Local and Peer are the two addresses. Port is the UDP port of KindDAT, KindStream and KindRaw.
	Local netip.Addr `json:"local"`
	Peer  netip.Addr `json:"peer"`
	Port  uint16     `json:"port"`
	// MTU is the MTU of the link, for rows that depend on it.
	MTU int `json:"mtu"`
	// CPUs are the CPUs that the measuring thread of KindDAT may run on; empty for any.
	CPUs CPUList `json:"cpus,omitempty"`
	// Realtime gives the measuring thread of a DAT target real-time priority. It has no effect on an initiator, whose
	// priority is a setting of the row.
	Realtime bool `json:"realtime,omitempty"`
	// Qualifier is the connection qualifier of the target, for KindDAT; 0 selects that of datbench.
	Qualifier uint64 `json:"qualifier,omitempty"`
	// PeerKey is the public key of the peer or its name in the file of peers, for an initiator of KindDAT in secure mode.
	// Without it, the file of peers says who has the address.
	PeerKey string `json:"peer_key,omitempty"`
	// Impair is the impairment of received packets, for KindDAT and KindTCP; empty for none.
	Impair string `json:"impair,omitempty"`
}
