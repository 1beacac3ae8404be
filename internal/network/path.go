package network

import (
	"fmt"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// One flow on a path that is long, that changes, or that reorders.

func pathCases() (all []Case) {
	for _, c := range []wanCase{
		{name: "1G", rate: 1e9, rtt: 10 * time.Millisecond, mtu: payload1500},
		{name: "1G-9000", rate: 1e9, rtt: 10 * time.Millisecond, mtu: payload9000},
		{name: "10G-9000", rate: 10e9, rtt: 10 * time.Millisecond, mtu: payload9000},
		{name: "1G-loss", rate: 1e9, rtt: 10 * time.Millisecond, mtu: payload1500, loss: 1e-4},
		{name: "1G-9000-loss", rate: 1e9, rtt: 10 * time.Millisecond, mtu: payload9000, loss: 1e-4},
		{name: "10G-9000-loss", rate: 10e9, rtt: 10 * time.Millisecond, mtu: payload9000, loss: 1e-4},
		{name: "1G-port", rate: 10e9, rtt: 10 * time.Millisecond, mtu: payload1500, port: simlink.Switch{Rate: 1e9, Buffer: 512 << 10}},
		{name: "1G-50ms", rate: 1e9, rtt: 50 * time.Millisecond, mtu: payload1500},
	} {
		all = append(all, Case{Name: "wan/" + c.name, Run: c.run})
	}
	for _, c := range []rerouteCase{
		{8 * time.Microsecond, 200 * time.Microsecond},
		{8 * time.Microsecond, 300 * time.Microsecond},
		{100 * time.Microsecond, time.Millisecond},
		{300 * time.Microsecond, 8 * time.Microsecond},
		{time.Millisecond, 100 * time.Microsecond},
	} {
		all = append(all, Case{Name: fmt.Sprintf("reroute/%v-%v", c.before, c.after), Run: c.run})
	}
	for _, down := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		all = append(all, Case{Name: fmt.Sprintf("flap/%v", down), Run: func(seed uint64) []Metric { return flap(down, seed) }})
	}
	for _, c := range []reorderCase{{8 * time.Microsecond, 0.01}, {8 * time.Microsecond, 0.1}, {100 * time.Microsecond, 0.01}, {100 * time.Microsecond, 0.1}} {
		all = append(all, Case{Name: fmt.Sprintf("reorder/%v/%.0f%%", c.rtt, 100*c.share), Run: c.run})
	}
	return all
}

// wanCase is one flow on a long path, from its first write on.
type wanCase struct {
	name string
	rate int64
	rtt  time.Duration
	mtu  int
	loss float64
	port simlink.Switch
}

const (
	wanRamp  = 150 * time.Millisecond // in which the flow has to reach its rate
	wanWrite = 1 << 20
	wanDepth = 32
)

// run measures the flow; with loss it also measures a network without.
func (c wanCase) run(seed uint64) []Metric {
	all := c.ramp(seed)
	kept := 1.0
	if c.loss > 0 {
		clean := c
		clean.loss = 0
		kept = all[wanAfter].Value / clean.ramp(seed)[wanAfter].Value
	}
	return append(all, Metric{"kept", kept})
}

const wanAfter = 2 // index of the share after the ramp

// ramp measures the shares of the line in the first time and after it.
func (c wanCase) ramp(seed uint64) []Metric {
	w := newWorld(Net{Rate: c.rate, RTT: c.rtt, MTU: c.mtu, Loss: c.loss, Port: c.port, Hosts: make([]simlink.Host, 2), Frames: 8192}, seed)
	rate := c.rate
	if c.port.Rate > 0 {
		rate = c.port.Rate
	}
	sink := w.hosts[1]
	f := w.connect(w.hosts[0], sink, load{size: wanWrite, depth: wanDepth})
	w.run(20 * c.rtt) // the search for the path MTU ends
	window := infos([]*flow{f})[0].Window
	share := func(d time.Duration) float64 {
		before := received(sink)
		w.run(d)
		return (received(sink) - before) * 8 / d.Seconds() / lineRate(rate, c.mtu)
	}
	f.start(w.now())
	return []Metric{{"first window", window}, {"in 150 ms", share(wanRamp)}, {"after", share(wanRamp)}, {"later", share(wanRamp)},
		{"window", infos([]*flow{f})[0].Window}}
}

// rerouteCase is one flow at 25 Gb/s on a path whose round trip changes.
type rerouteCase struct{ before, after time.Duration }

func (c rerouteCase) run(seed uint64) []Metric {
	w := newWorld(Net{Rate: 25e9, RTT: c.before, MTU: payload1500, Port: deep, Hosts: make([]simlink.Host, 2)}, seed)
	f := w.fan(1, 1, load{size: 256 << 10, depth: 8})
	w.startWithin(f, time.Microsecond)
	w.run(warmUp)
	w.setRTT(w.hosts[0], w.hosts[1], c.after)
	var all []Metric
	for _, window := range []struct {
		name string
		d    time.Duration
	}{{"10 ms", 10 * time.Millisecond}, {"to 100 ms", 90 * time.Millisecond}, {"to 200 ms", 100 * time.Millisecond}} {
		before := received(w.hosts[1])
		w.run(window.d)
		all = append(all, Metric{window.name, (received(w.hosts[1]) - before) * 8 / window.d.Seconds() / lineRate(25e9, payload1500)})
	}
	return append(all, Metric{"window", infos(f)[0].Window})
}

// flap cuts the cable of the receiver of 8 flows for a time. It measures how long after the repair the first packet is
// acknowledged, and how long the flows take to reach 0.9 of the line.
func flap(down time.Duration, seed uint64) []Metric {
	const senders, step = 8, 200 * time.Microsecond
	net := rack25[3]
	w := newWorld(net.net(senders+1), seed)
	flows, sink := w.fan(senders, senders, bulk), w.hosts[senders]
	w.startWithin(flows, 100*time.Microsecond)
	w.run(warmUp)
	w.net.SetDown(sink.link.Local(), true)
	w.run(down)
	w.net.SetDown(sink.link.Local(), false)
	begin, placed := w.now(), received(sink)
	since := func() float64 { return float64(w.now()-begin) / 1e6 }
	w.within(10*time.Second, func() bool { return received(sink) > placed })
	first := since()
	for w.now() < begin+int64(10*time.Second) {
		before := received(sink)
		if w.run(step); (received(sink)-before)*8/step.Seconds() > 0.9*net.line() {
			break
		}
	}
	full := since()
	m := w.measureRates(flows)
	w.run(interval)
	return []Metric{{"first ms", first}, {"90 % ms", full}, {"jain", jain(m.rates())}}
}

// reorderCase is one flow at 25 Gb/s on a path that makes a share of the packets late, by the time of 3 to 30 packets.
type reorderCase struct {
	rtt   time.Duration
	share float64
}

func (c reorderCase) run(seed uint64) []Metric {
	rate := func(share float64) (rate, again float64) {
		const packet = (payload1500 + wireOverhead) * 8 / 25 * time.Nanosecond
		w := newWorld(Net{Rate: 25e9, RTT: c.rtt, MTU: payload1500, Port: deep, Hosts: make([]simlink.Host, 2),
			Hold: simlink.Hold{Share: share, Min: 3 * packet, Max: 30 * packet}}, seed)
		f := w.fan(1, 1, load{size: 256 << 10, depth: 8})
		w.startWithin(f, time.Microsecond)
		w.run(warmUp)
		m, before := w.measure(f), received(w.hosts[1])
		w.run(measured)
		return (received(w.hosts[1]) - before) * 8 / m.seconds(), m.again()
	}
	ordered, _ := rate(0)
	late, again := rate(c.share)
	return []Metric{{"in order", ordered / lineRate(25e9, payload1500)}, {"late", late / lineRate(25e9, payload1500)},
		{"late/in order", late / ordered}, {"again %", 100 * again}}
}
