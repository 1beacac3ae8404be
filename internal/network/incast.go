package network

import (
	"fmt"
	"time"
)

// Incast: many hosts send one operation each to one host, all within a microsecond.

const (
	incastSpread = time.Microsecond
	incastPause  = 100 * time.Microsecond // between two rounds
	incastRounds = 5                      // warm rounds
)

func incastCases() (all []Case) {
	for _, f := range rack25 {
		for _, n := range []int{2, 8, 32, 128} {
			all = append(all, incastCase(f, n, 64<<10))
		}
		for _, n := range []int{8, 32} {
			all = append(all, incastCase(f, n, 1<<20))
		}
	}
	for _, f := range rack25Jumbo {
		for _, n := range []int{2, 8, 32} {
			all = append(all, incastCase(f, n, 1<<20))
		}
	}
	for _, f := range rack10 {
		for _, n := range []int{8, 32, 128} {
			all = append(all, incastCase(f, n, 64<<10))
		}
	}
	return all
}

func incastCase(f fabric, n, size int) Case {
	return Case{Name: fmt.Sprintf("incast/%s/%d/%dK", f.name, n, size>>10), Run: func(seed uint64) []Metric { return incast(f, n, size, seed) }}
}

// incast measures a cold round, with the first operations of the connections, and warm rounds.
func incast(f fabric, n, size int, seed uint64) []Metric {
	w := newWorld(f.net(n+1), seed)
	flows := w.fan(n, n, load{size: size, depth: 1, limit: 1})
	sink := w.hosts[n]
	m := w.measure(flows)
	cold := w.round(flows, f.ideal(n*size))
	metrics := []Metric{{"cold", cold}, {"cold drop %", 100 * m.dropped(sink)}, {"cold timeouts", m.timeouts()}}
	var warm []float64
	m = w.measure(flows)
	for range incastRounds {
		w.run(incastPause)
		warm = append(warm, w.round(flows, f.ideal(n*size)))
	}
	return append(metrics, Metric{"warm", median(warm)}, Metric{"warm drop %", 100 * m.dropped(sink)},
		Metric{"warm timeouts", m.timeouts() / incastRounds})
}

// round makes each flow post once more. It returns the time until the last write has completed, divided by ideal.
func (w *World) round(flows []*flow, ideal float64) float64 {
	begin := w.now()
	for _, f := range flows {
		f.limit = f.done + 1
	}
	w.startWithin(flows, incastSpread)
	w.until("the end of a round", time.Minute, func() bool {
		for _, f := range flows {
			if f.done < f.limit {
				return false
			}
		}
		return true
	})
	return float64(w.now()-begin) / ideal
}
