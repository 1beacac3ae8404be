package network

import (
	"fmt"
	"time"
)

// Bulk in the steady state: flows with several writes outstanding share the port of one host.

const (
	warmUp   = 30 * time.Millisecond
	interval = 10 * time.Millisecond // over which fairness is judged
	measured = 40 * time.Millisecond
)

func steadyCases() (all []Case) {
	for _, f := range rack25 {
		for _, n := range []int{2, 8, 32, 128} {
			all = append(all, steadyCase(f, n, n))
		}
	}
	for _, f := range rack25Jumbo {
		for _, n := range []int{2, 8, 32} {
			all = append(all, steadyCase(f, n, n))
		}
	}
	for _, f := range rack10 {
		for _, n := range []int{2, 8, 32, 128} {
			all = append(all, steadyCase(f, n, n))
		}
	}
	for _, f := range rack25 {
		all = append(all, steadyCase(f, 1, 64))
	}
	return all
}

// steadyCase has flows from a number of senders to one host.
func steadyCase(f fabric, senders, flows int) Case {
	name := fmt.Sprintf("steady/%s/%d", f.name, flows)
	if senders < flows {
		name += fmt.Sprintf("-from-%d", senders)
	}
	return Case{Name: name, Run: func(seed uint64) []Metric { return steady(f, senders, flows, seed) }}
}

func steady(f fabric, senders, n int, seed uint64) []Metric {
	w := newWorld(f.net(senders+1), seed)
	sink := w.hosts[senders]
	flows := w.fan(senders, n, bulk)
	w.startWithin(flows, 100*time.Microsecond)
	w.run(warmUp)
	m, placed := w.measure(flows), received(sink)
	fair := 0.0
	for range measured / interval {
		part := w.measureRates(flows)
		w.run(interval)
		fair += jain(part.rates()) / float64(measured/interval)
	}
	goodput := (received(sink) - placed) * 8 / m.seconds()
	p := w.net.Port(sink.link.Local())
	return []Metric{{"jain", fair}, {"drop %", 100 * m.dropped(sink)}, {"again %", 100 * m.again()}, {"goodput", goodput / f.line()},
		{"queue KB", p.MeanQueue / 1e3}, {"max KB", float64(p.MaxQueue) / 1e3}}
}

// fan makes n flows from the first hosts to the last one, in turn.
func (w *World) fan(senders, n int, l load) (flows []*flow) {
	sink := w.hosts[len(w.hosts)-1]
	for i := range n {
		flows = append(flows, w.connect(w.hosts[i%senders], sink, l))
	}
	w.run(settle)
	return flows
}

// startWithin starts flows at random times within d.
func (w *World) startWithin(flows []*flow, d time.Duration) {
	for _, f := range flows {
		f.start(w.now() + w.rng.Int64N(int64(d)))
	}
}
