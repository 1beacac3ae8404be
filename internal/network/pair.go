package network

import (
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// Two unequal flows on one port, and flows that come and go.

// pairCase is two bulk flows from hosts that differ.
type pairCase struct {
	name   string
	fabric fabric
	rtt    [2]time.Duration // 0: that of the fabric
	hosts  [2]simlink.Host
}

func pairCases() (all []Case) {
	for _, p := range []struct {
		name string
		port simlink.Switch
	}{{"128K", shallow}, {"128K-ecn", shallowMark}, {"1M", deep}, {"1M-ecn", deepMark}} {
		ten := fabric{p.name, 10e9, 0, payload1500, p.port}
		all = append(all, pairCase{name: "rtt/5us-100us/" + p.name, fabric: ten, rtt: [2]time.Duration{5 * time.Microsecond, 100 * time.Microsecond}}.of())
		all = append(all, pairCase{name: "rtt/20us-1ms/" + p.name, fabric: ten, rtt: [2]time.Duration{20 * time.Microsecond, time.Millisecond}}.of())
		mixed := fabric{p.name, 25e9, 8 * time.Microsecond, payload9000, p.port}
		all = append(all, pairCase{name: "mtu/1500-9000/" + p.name, fabric: mixed, hosts: [2]simlink.Host{{MTU: payload1500}}}.of())
		all = append(all, pairCase{name: "mtu/9000-9000/" + p.name, fabric: mixed}.of())
		all = append(all, joinCase(fabric{p.name, 25e9, 8 * time.Microsecond, payload1500, p.port}))
	}
	return all
}

func (p pairCase) of() Case {
	return Case{Name: "pair/" + p.name, Run: func(seed uint64) []Metric { return p.run(seed) }}
}

// run measures the shares of the port of the two flows, and the ratio of the larger share to the smaller one.
func (p *pairCase) run(seed uint64) []Metric {
	n := p.fabric.net(3)
	copy(n.Hosts, p.hosts[:])
	w := newWorld(n, seed)
	for i, rtt := range p.rtt {
		if rtt > 0 {
			w.setRTT(w.hosts[i], w.hosts[2], rtt)
		}
	}
	flows := w.fan(2, 2, bulk)
	w.run(settle + 50*p.rtt[1])
	w.startWithin(flows, 100*time.Microsecond)
	w.run(10 * warmUp)
	m := w.measure(flows)
	w.run(5*measured + 50*p.rtt[1])
	a, b := m.shares()
	port := w.net.Port(w.hosts[2].link.Local())
	sizes := infos(flows)
	return []Metric{{"first", a}, {"second", b}, {"ratio", max(a, b) / max(min(a, b), 1e-6)}, {"drop %", 100 * m.dropped(w.hosts[2])},
		{"queue KB", port.MeanQueue / 1e3}, {"size", float64(sizes[1].MTU)}, {"black holes", float64(m.blackHoles())}}
}

// shares returns the rates of two flows, divided by the rate of the port. Headers count.
func (m *meter) shares() (a, b float64) {
	r, at := m.rates(), infos(m.flows)
	for i := range r {
		r[i] *= float64(at[i].MTU+wireOverhead) / float64(at[i].MTU-packetOverhead) / m.world.portRate
	}
	return r[0], r[1]
}

// setRTT sets the round trip of the empty network between two hosts.
func (w *World) setRTT(a, b *host, rtt time.Duration) {
	w.net.SetDelay(a.link.Local(), b.link.Local(), rtt/2)
	w.net.SetDelay(b.link.Local(), a.link.Local(), rtt/2)
}

// Flows join until there are four, and leave again.

const (
	joinEvery = 20 * time.Millisecond
	joinStep  = time.Millisecond // over which rates are taken
	joinFair  = 0.95
)

func joinCase(f fabric) Case {
	return Case{Name: "join/" + f.name, Run: func(seed uint64) []Metric { return join(f, seed) }}
}

// join measures the longest time from a change of the number of flows until they are fair, and the least utilisation of
// the port in any step.
func join(f fabric, seed uint64) []Metric {
	const most = 4
	w := newWorld(f.net(most+1), seed)
	flows := w.fan(most, most, bulk)
	slowest, least := time.Duration(0), 1.0
	for _, active := range []int{1, 2, 3, 4, 3, 2, 1} {
		for i, from := range flows {
			if i < active && from.nextAt == never {
				from.start(w.now())
			} else if i >= active {
				from.stop()
			}
		}
		took, used := w.converge(flows[:active], f)
		slowest, least = max(slowest, took), min(least, used)
	}
	return []Metric{{"fair after ms", float64(slowest) / 1e6}, {"least used", least}}
}

// converge runs until the next change. It returns the time after which the first step was fair, and the least
// utilisation of all steps except the first.
func (w *World) converge(flows []*flow, f fabric) (took time.Duration, used float64) {
	took, used = joinEvery, 1
	for at := time.Duration(0); at < joinEvery; at += joinStep {
		m := w.measureRates(flows)
		w.run(joinStep)
		rates, sum := m.rates(), 0.0
		for _, r := range rates {
			sum += r / f.line()
		}
		if jain(rates) >= joinFair {
			took = min(took, at+joinStep)
		}
		if at > 0 {
			used = min(used, sum)
		}
	}
	return took, used
}
