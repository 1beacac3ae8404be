package main

import (
	"slices"

	"github.com/datxdp/datxdp/internal/result"
)

// rawLabs has a lab for each engine: asavie's cannot give a queue back.
func rawLabs(cfg *options, l link) (labs [][]phase) {
	for _, engine := range cfg.engines {
		labs = append(labs, rawPhases(engine, cfg, l))
	}
	return slices.DeleteFunc(labs, func(phases []phase) bool { return countRows(phases) == 0 })
}

// rawPhases are one engine's rows: latency and rate at MTU 1500, full frames at each MTU.
func rawPhases(engine string, cfg *options, l link) (phases []phase) {
	for _, mtu := range cfg.mtus {
		if engine == engineAsavie && mtu != 1500 {
			continue
		}
		phases = append(phases, l.phase(cfg, kindRaw, engine, mtu, rawRowsAt(cfg, engine, mtu)...))
	}
	return phases
}

func rawRowsAt(cfg *options, engine string, mtu int) []Spec {
	op := result.Raw
	if engine == engineAsavie {
		op = result.RawAsavie
	}
	rows := rawRows(cfg, op)
	if mtu != 1500 {
		rows = []Spec{cfg.row(op, result.Bandwidth, transportXDP, frameSize(mtu))}
	}
	return slices.DeleteFunc(rows, func(r Spec) bool { return !asked(cfg.metric, r.Metric) })
}
