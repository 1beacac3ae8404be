package network

import (
	"fmt"
	"time"
)

// Small requests, one at a time, beside bulk flows on the same port.

func requestCases() (all []Case) {
	for _, fs := range [][]fabric{rack25, rack25Jumbo} {
		for _, f := range fs {
			all = append(all, Case{Name: fmt.Sprintf("requests/%s", f.name), Run: func(seed uint64) []Metric { return besideBulk(f, 8, seed) }})
		}
	}
	return all
}

// besideBulk measures requests alone, and then beside n bulk flows.
func besideBulk(f fabric, n int, seed uint64) []Metric {
	w := newWorld(f.net(n+2), seed)
	sink := w.hosts[n+1]
	flows := w.fan(n, n, bulk)
	small := w.connect(w.hosts[n], sink, requests)
	w.run(settle)
	alone := w.sample(small, 3*time.Millisecond)
	w.startWithin(flows, 100*time.Microsecond)
	w.run(warmUp / 2)
	w.net.ResetPorts()
	beside := w.sample(small, 2*warmUp)
	p50, base := quantile(beside, 0.5), quantile(alone, 0.5)
	return []Metric{{"alone us", base}, {"p50 us", p50}, {"p99 us", quantile(beside, 0.99)}, {"p50/alone", p50 / base},
		{"p99/alone", quantile(beside, 0.99) / base}, {"queue KB", w.net.Port(sink.link.Local()).MeanQueue / 1e3}}
}

// sample lets a flow post for a time, and returns how long its writes took.
func (w *World) sample(f *flow, d time.Duration) []time.Duration {
	f.took = nil
	f.start(w.now())
	w.run(d)
	f.stop()
	return f.took
}
