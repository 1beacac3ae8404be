package network

import (
	"fmt"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// Case is one row: a network, and what is measured in it.
type Case struct {
	// Name is unique. Its parts, divided by slashes, are the kind and what distinguishes the row within its kind.
	Name string
	// Run measures the row. The same seed gives the same figures. It may run at the same time as others.
	Run func(seed uint64) []Metric
	// Worst makes the figures the largest of all seeds, and not the medians.
	Worst bool
}

// Metric is one figure of a row.
type Metric struct {
	Name  string
	Value float64
}

// Cases returns all rows.
func Cases() []Case {
	var all []Case
	all = append(all, steadyCases()...)
	all = append(all, incastCases()...)
	all = append(all, requestCases()...)
	all = append(all, pairCases()...)
	all = append(all, pathCases()...)
	all = append(all, neighbourCases()...)
	all = append(all, troubleCases()...)
	all = append(all, mixCases()...)
	return all
}

// fabric is a network with one switch in a rack.
type fabric struct {
	name string
	rate int64
	rtt  time.Duration
	mtu  int
	port simlink.Switch
}

// net returns the network with n hosts.
func (f *fabric) net(n int) Net {
	return Net{Rate: f.rate, RTT: f.rtt, MTU: f.mtu, Port: f.port, Hosts: make([]simlink.Host, n)}
}

func (f *fabric) line() float64 { return lineRate(f.rate, f.mtu) }

// ideal returns the time in which n bytes of payload cross an empty network.
func (f *fabric) ideal(n int) float64 {
	return float64(f.rtt) + float64(n)*8e9/f.line() + float64(f.mtu+wireOverhead)*8e9/float64(f.rate)
}

// Ports. The buffers are those of a switch with little memory for each port, and of one with much. The marking
// thresholds are those of DCTCP at 10 and 25 Gb/s.
var (
	shallow     = simlink.Switch{Buffer: 128 << 10}
	shallowMark = simlink.Switch{Buffer: 128 << 10, Mark: 40 << 10}
	deep        = simlink.Switch{Buffer: 1 << 20}
	deepMark    = simlink.Switch{Buffer: 1 << 20, Mark: 100 << 10}
)

// fabrics returns the networks at a rate, round trip and MTU, one for each kind of port.
func fabrics(name string, rate int64, rtt time.Duration, mtu int) []fabric {
	var all []fabric
	for _, p := range []struct {
		name string
		port simlink.Switch
	}{{"128K", shallow}, {"128K-ecn", shallowMark}, {"1M", deep}, {"1M-ecn", deepMark}} {
		all = append(all, fabric{fmt.Sprintf("%s/%s", name, p.name), rate, rtt, mtu, p.port})
	}
	return all
}

var (
	rack25      = fabrics("25G", 25e9, 8*time.Microsecond, payload1500)
	rack25Jumbo = fabrics("25G-9000", 25e9, 8*time.Microsecond, payload9000)
	rack10      = fabrics("10G", 10e9, 20*time.Microsecond, payload1500)
)
