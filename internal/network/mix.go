package network

import (
	"math/rand/v2"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// Racks drawn by seed, in which everything happens at once.

const (
	mixMost    = 24 // bulk flows
	mixTrouble = 60 * time.Millisecond
	mixCalm    = 30 * time.Millisecond // from the last fault until the measurement
	mixRun     = 20 * time.Millisecond
)

func mixCases() []Case {
	return []Case{
		{Name: "mix/25G", Run: func(seed uint64) []Metric { return mix(seed, nil) }},
		{Name: "mix/25G-shared", Run: func(seed uint64) []Metric { return mix(seed, &simlink.Switch{Shared: 2 << 20, Alpha: 1}) }},
	}
}

// rack is a mixed rack.
type rack struct {
	*World
	sink  *host
	bulk  []*flow
	small *flow
}

// newRack draws a rack; port is nil to draw the port too.
func newRack(seed uint64, port *simlink.Switch) *rack {
	rng := rand.New(rand.NewPCG(seed, 4))
	n := 2 + rng.IntN(mixMost-1)
	net := Net{Rate: 25e9, RTT: 8 * time.Microsecond, MTU: payload9000}
	if net.Port = []simlink.Switch{shallow, shallowMark, deep, deepMark}[rng.IntN(4)]; port != nil {
		net.Port = *port
	}
	for range n + 1 {
		net.Hosts = append(net.Hosts, simlink.Host{MTU: []int{payload1500, payload9000}[rng.IntN(4)/3]})
	}
	net.Hosts = append(net.Hosts, simlink.Host{})
	r := &rack{World: newWorld(net, seed)}
	r.sink = r.hosts[n+1]
	for _, h := range r.hosts[:n+1] {
		r.setRTT(h, r.sink, 5*time.Microsecond+time.Duration(r.rng.Int64N(int64(195*time.Microsecond))))
	}
	r.bulk = r.fan(n, n, bulk)
	r.small = r.connect(r.hosts[n], r.sink, requests)
	r.run(settle)
	return r
}

// mix measures a rack after its faults.
func mix(seed uint64, port *simlink.Switch) []Metric {
	r := newRack(seed, port)
	alone := r.sample(r.small, 3*time.Millisecond)
	r.startWithin(r.bulk, mixTrouble/2)
	r.small.start(r.now())
	for end := r.now() + int64(mixTrouble); r.now() < end; {
		r.disturb()
		r.run(time.Duration(r.rng.Int64N(int64(mixTrouble / 4))))
	}
	r.run(mixCalm)
	r.small.took = nil
	m := r.measure(r.bulk)
	r.run(mixRun)
	rates, p := m.rates(), r.net.Port(r.sink.link.Local())
	sum, least := 0.0, rates[0]
	for _, v := range rates {
		sum, least = sum+v, min(least, v)
	}
	return []Metric{{"flows", float64(len(rates))}, {"used", float64(p.Bytes) * 8 / mixRun.Seconds() / r.portRate},
		{"least share", least * float64(len(rates)) / sum}, {"jain", jain(rates)}, {"drop %", 100 * m.dropped(r.sink)},
		{"p50/alone", quantile(r.small.took, 0.5) / quantile(alone, 0.5)}, {"queue KB", p.MeanQueue / 1e3}}
}

// disturb does something to one host, for up to 10 ms.
func (r *rack) disturb() {
	h := r.hosts[r.rng.IntN(len(r.bulk))]
	from, to := h.link.Local(), r.sink.link.Local()
	d := time.Duration(r.rng.Int64N(int64(10 * time.Millisecond)))
	switch r.rng.IntN(5) {
	case 0:
		r.setRTT(h, r.sink, 5*time.Microsecond+time.Duration(r.rng.Int64N(int64(295*time.Microsecond))))
	case 1:
		r.net.SetDown(from, true)
		r.run(d)
		r.net.SetDown(from, false)
	case 2:
		r.net.SetHold(from, to, simlink.Hold{Share: 0.1, Min: 2 * time.Microsecond, Max: 15 * time.Microsecond})
		r.run(d)
		r.net.SetHold(from, to, simlink.Hold{})
	case 3:
		r.net.SetLoss(from, to, 0.2*r.rng.Float64())
		r.run(d)
		r.net.SetLoss(from, to, 0)
	default:
		h.stop(d)
		r.run(d)
	}
}
