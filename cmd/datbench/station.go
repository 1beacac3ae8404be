package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// Kinds of traffic that two sides can exchange.
const (
	kindDAT = "dat"
	kindRaw = "raw"
	kindTCP = "tcp"
)

// station is where one side stands: all it needs to know to open its end.
type station struct {
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
	CPUs cpuList `json:"cpus,omitempty"`
	// Realtime is whether the target's measuring thread of kindDAT goes before others; the initiator's is the row's.
	Realtime bool `json:"realtime,omitempty"`
	// Impair is done to what is received, by kindDAT and kindTCP; empty for nothing.
	Impair string `json:"impair,omitempty"`
}

// target answers an initiator, on goroutines of its own, until it is closed. close reports what
// went wrong while it served.
type target interface{ close() error }

// initiator measures one row at a time. One goroutine uses it.
type initiator interface {
	run(ctx context.Context, row Spec) (Result, error)
	close() error
}

// host is what the ends of one process share.
type host struct {
	// metrics shows the adapters that are open; nil if nobody asked.
	metrics *shown
	// capture is what adapters write their packets to; nil if nobody asked.
	capture *capture
	// tell is called with each interval of a row, by the goroutine that measures; nil if nobody asked.
	tell func(Spec, result.Interval)
	// job tells the rows of this process from others. wait is how long a server that is taken is waited for, which
	// waiting tells of.
	job     uint64
	wait    time.Duration
	waiting func(string)
}

func (h *host) newTarget(s station) (target, error) {
	switch s.Kind {
	case kindDAT:
		return newDATTarget(h, s)
	case kindRaw:
		return newRawTarget(s)
	case kindTCP:
		return newTCPTarget(s)
	}
	return nil, fmt.Errorf("no traffic of kind %q", s.Kind)
}

func (h *host) newInitiator(s station) (initiator, error) {
	switch s.Kind {
	case kindDAT:
		return newDATInitiator(h, s)
	case kindRaw:
		return newRawInitiator(s)
	case kindTCP:
		return newTCPInitiator(s)
	}
	return nil, fmt.Errorf("no traffic of kind %q", s.Kind)
}
