package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// pageMTU is the most that a driver without multi-buffer XDP carries: a page less headroom, headers and
// what the kernel notes in it.
const pageMTU = 3498

// mainPhasesXDP are the rows of the main job: everything at MTU 1500, streams again at jumbo. asavie's
// engine has a lab for itself: it cannot give a queue back.
func mainPhasesXDP(cfg *options, l link) [][]phase {
	jumbo, ops := []int{9000, 65000}, []string{result.Write}
	if cfg.full {
		jumbo, ops = []int{pageMTU, 9000, 65000}, datOps
	}
	phases := []phase{
		l.phase(cfg, kindRaw, engineNative, 1500, rawRows(cfg, result.Raw)...),
		l.phase(cfg, kindDAT, "", 1500, datRows(cfg, transportXDP)...),
		l.phase(cfg, kindTCP, "", 1500, tcpRows(cfg)...),
	}
	if cfg.full {
		churned := l.phase(cfg, kindDAT, "", 1500, churnRow(cfg, transportXDP))
		churned.target.Realtime, churned.rows[0].Realtime = cfg.realtime, cfg.realtime
		phases = append(phases, churned)
	}
	for _, mtu := range jumbo {
		phases = append(phases,
			l.phase(cfg, kindRaw, engineNative, mtu, cfg.row(result.Raw, result.Bandwidth, transportXDP, frameSize(mtu))),
			l.phase(cfg, kindDAT, "", mtu, rowsOf(cfg, result.Bandwidth, transportXDP, ops)...),
			l.phase(cfg, kindTCP, "", mtu, cfg.row(result.TCP, result.Bandwidth, transportTCP, streamSize)))
	}
	asavie := l.phase(cfg, kindRaw, engineAsavie, 1500, rawRows(cfg, result.RawAsavie)...)
	return filter(cfg, phases, []phase{asavie})
}

// mainPhasesUDP are the rows that need no XDP.
func mainPhasesUDP(cfg *options, l link) [][]phase {
	phases := []phase{
		l.phase(cfg, kindDAT, "", 0, datRows(cfg, transportUDP)...),
		l.phase(cfg, kindTCP, "", 0, tcpRows(cfg)...),
	}
	if cfg.full {
		phases = append(phases, l.phase(cfg, kindDAT, "", 0, churnRow(cfg, transportUDP)))
	}
	return filter(cfg, phases)
}

func rawRows(cfg *options, op string) []Spec {
	return []Spec{
		cfg.row(op, result.Latency, transportXDP, rawFrame),
		cfg.row(op, result.Rate, transportXDP, rawFrame),
		cfg.row(op, result.Bandwidth, transportXDP, frameSize(1500)),
	}
}

// frameSize is the bytes of a full Ethernet frame.
func frameSize(mtu int) int64 { return int64(mtu) + 14 }

// datOps are our operations.
var datOps = []string{result.Send, result.Write, result.Read}

func datRows(cfg *options, transport string) (rows []Spec) {
	for _, metric := range []string{result.Latency, result.Rate, result.Bandwidth} {
		rows = append(rows, rowsOf(cfg, metric, transport, datOps)...)
	}
	if cfg.full {
		rows = append(rows, fullRows(cfg, transport)...)
	}
	return rows
}

func rowsOf(cfg *options, metric, transport string, ops []string) (rows []Spec) {
	for _, op := range ops {
		rows = append(rows, cfg.row(op, metric, transport, sizeFor(metric)))
	}
	return rows
}

// fullConnections is how many a row of --full has: each its own windows and timers, in one thread.
const fullConnections = 64

// fullRows are the rows that --full adds to those of one link.
func fullRows(cfg *options, transport string) []Spec {
	spread := cfg.row(result.Send, result.Rate, transport, defaultSize)
	spread.Connections = fullConnections
	return []Spec{spread, cfg.row(result.Send, result.Requests, transport, defaultSize)}
}

// churnRow is one more, with ends of its own.
func churnRow(cfg *options, transport string) Spec {
	churned := cfg.row(result.Send, result.Latency, transport, defaultSize)
	churned.Churn = int64(cmp.Or(cfg.churn, churnSize))
	churned.Duration *= churnTimes
	return churned
}

func tcpRows(cfg *options) (rows []Spec) {
	for _, metric := range []string{result.Latency, result.Rate, result.Bandwidth} {
		rows = append(rows, cfg.row(result.TCP, metric, transportTCP, sizeFor(metric)))
	}
	return rows
}

func sizeFor(metric string) int64 {
	if metric == result.Bandwidth || metric == result.SHA256 {
		return streamSize
	}
	return defaultSize
}

// filter keeps the rows whose operation, metric and MTU are asked for; an empty list asks for all.
func filter(cfg *options, labs ...[]phase) (kept [][]phase) {
	for _, phases := range labs {
		var some []phase
		for _, ph := range phases {
			ph.rows = slices.DeleteFunc(ph.rows, func(r Spec) bool {
				return !asked(cfg.ops, r.Op) || !asked(cfg.metric, r.Metric) || !askedMTU(cfg.mtus, r.MTU)
			})
			if len(ph.rows) > 0 {
				some = append(some, ph)
			}
		}
		if len(some) > 0 {
			kept = append(kept, some)
		}
	}
	return kept
}

func asked(list []string, word string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, word) })
}

func askedMTU(list []int, mtu int) bool {
	return len(list) == 0 || slices.Contains(list, mtu)
}

// mainLabs are the rows of the main job, by what lies between the agents.
func mainLabs(cfg *options, l link) [][]phase {
	if !cfg.impair.Zero() {
		return impairedLabs(cfg, l)
	}
	if l.transport == transportXDP {
		return mainPhasesXDP(cfg, l)
	}
	return mainPhasesUDP(cfg, l)
}

// selftestLabs move and compare, once per MTU asked for.
func selftestLabs(cfg *options, l link) [][]phase {
	var phases []phase
	mtus := cfg.mtus
	if l.transport == transportUDP {
		mtus = []int{0}
	}
	for _, mtu := range mtus {
		var rows []Spec
		for _, op := range []string{result.Send, result.Write, result.Read} {
			rows = append(rows, cfg.row(op, result.SHA256, l.transport, streamSize))
		}
		phases = append(phases, l.phase(cfg, kindDAT, "", mtu, rows...).impaired(cfg.impair.text()))
	}
	return [][]phase{phases}
}
