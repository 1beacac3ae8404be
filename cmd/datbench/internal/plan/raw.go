package plan

import (
	"slices"

	"github.com/datxdp/datxdp/internal/result"
)

// RawJob returns the phases of the raw job. Each engine has its own lab (a pair of namespaces), because the engine of
// asavie/xdp cannot release a queue.
func RawJob(cfg *Options, l Link) (labs [][]Phase) {
	for _, engine := range cfg.Engines {
		labs = append(labs, rawPhases(engine, cfg, l))
	}
	return slices.DeleteFunc(labs, func(phases []Phase) bool { return CountRows(phases) == 0 })
}

// rawPhases returns the phases of one engine: latency and rate at MTU 1500, and full frames at each MTU.
func rawPhases(engine string, cfg *Options, l Link) (phases []Phase) {
	for _, mtu := range cfg.MTUs {
		if engine == engineAsavie && mtu != 1500 {
			continue
		}
		phases = append(phases, l.Phase(cfg, KindRaw, engine, mtu, rawRowsAt(cfg, engine, mtu)...))
	}
	return phases
}

func rawRowsAt(cfg *Options, engine string, mtu int) []Spec {
	op := result.Raw
	if engine == engineAsavie {
		op = result.RawAsavie
	}
	rows := rawRows(cfg, op)
	if mtu != 1500 {
		rows = []Spec{cfg.row(op, result.Bandwidth, TransportXDP, frameSize(mtu))}
	}
	return slices.DeleteFunc(rows, func(r Spec) bool { return !asked(cfg.Metrics, r.Metric) })
}
