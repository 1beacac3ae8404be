package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// pageMTU is the largest MTU in bytes of a driver without multi-buffer XDP: a page minus the headroom, the headers and
// the kernel's skb_shared_info.
const pageMTU = 3498

// mainPhasesXDP returns the phases of the main job over XDP: all rows at MTU 1500, and the bandwidth rows also at jumbo
// MTUs. Some rows also run over kernel UDP, unless the user has chosen XDP. The engine of asavie/xdp needs a lab (a pair
// of namespaces) of its own, because this engine cannot release a queue.
func mainPhasesXDP(cfg *Options, l Link) [][]Phase {
	jumbo, ops := []int{9000, 65000}, []string{result.Write}
	if cfg.Full {
		jumbo, ops = []int{pageMTU, 9000, 65000}, Ops
	}
	phases := []Phase{
		l.Phase(cfg, KindRaw, EngineNative, 1500, rawRows(cfg, result.Raw)...),
		l.Phase(cfg, KindDAT, "", 1500, datRows(cfg, TransportXDP)...),
		l.Phase(cfg, KindTCP, "", 1500, tcpRows(cfg)...),
		l.Phase(cfg, KindTCPShared, "", 1500, cfg.row(result.TCPShared, result.Bandwidth, transportTCP, streamSize)),
	}
	phases = append(phases, besideUDP(cfg, l, 1500)...)
	phases = append(phases, secureRows(cfg, l, 1500, datRows(cfg, TransportXDP))...)
	if cfg.Full {
		churned := l.Phase(cfg, KindDAT, "", 1500, churnRow(cfg, TransportXDP))
		churned.Target.Realtime, churned.Rows[0].Realtime = cfg.Realtime, cfg.Realtime
		phases = append(phases, l.Phase(cfg, KindStream, "", 1500, streamRows(cfg, TransportXDP)...), churned)
	}
	for _, mtu := range jumbo {
		phases = append(phases,
			l.Phase(cfg, KindRaw, EngineNative, mtu, cfg.row(result.Raw, result.Bandwidth, TransportXDP, frameSize(mtu))),
			l.Phase(cfg, KindDAT, "", mtu, rowsOf(cfg, result.Bandwidth, TransportXDP, ops)...),
			l.Phase(cfg, KindTCP, "", mtu, cfg.row(result.TCP, result.Bandwidth, transportTCP, streamSize)))
		phases = append(phases, besideUDP(cfg, l, mtu)...)
		phases = append(phases, secureRows(cfg, l, mtu, rowsOf(cfg, result.Bandwidth, TransportXDP, ops))...)
		if cfg.Full {
			phases = append(phases, l.Phase(cfg, KindStream, "", mtu, cfg.row(result.Stream, result.Bandwidth, TransportXDP, streamSize)))
		}
	}
	asavie := l.Phase(cfg, KindRaw, engineAsavie, 1500, rawRows(cfg, result.RawAsavie)...)
	return filter(cfg, phases, []Phase{asavie})
}

// secureRows returns the phase that measures rows again in secure mode, if the user has asked for it.
func secureRows(cfg *Options, l Link, mtu int, rows []Spec) []Phase {
	if !cfg.Secure {
		return nil
	}
	for i := range rows {
		rows[i].Secure = true
	}
	return []Phase{l.secured().Phase(cfg, KindDAT, "", mtu, rows...)}
}

// besideUDP returns the phase over kernel UDP that stands beside the rows over XDP at an MTU, if there is one. XDP is
// detached while it runs.
func besideUDP(cfg *Options, l Link, mtu int) []Phase {
	var rows []Spec
	switch {
	case cfg.Transport == TransportXDP:
		return nil
	case mtu == 1500:
		rows = []Spec{cfg.row(result.Send, result.Latency, TransportUDP, defaultSize), cfg.row(result.Send, result.Rate, TransportUDP, defaultSize)}
	case mtu != commonJumbo:
		return nil
	}
	write := cfg.row(result.Write, result.Bandwidth, TransportUDP, streamSize)
	phases := []Phase{l.overUDP().Phase(cfg, KindDAT, "", mtu, append(rows, write)...)}
	if cfg.Full && mtu == 1500 {
		for _, text := range lossRows {
			phases = append(phases, l.overUDP().Phase(cfg, KindDAT, "", mtu, write).Impaired(text))
		}
	}
	return phases
}

// lossRows are the impairments under which --full measures writes over kernel UDP. A group of packets that the kernel
// moves as one must not be lost as one.
var lossRows = []string{"loss=0.001,seed=1", "loss=0.01,seed=1"}

// commonJumbo is the jumbo MTU at which rows run over kernel UDP too: the largest that networks commonly have.
const commonJumbo = 9000

// mainPhasesUDP returns the phases that need no XDP.
func mainPhasesUDP(cfg *Options, l Link) [][]Phase {
	phases := []Phase{
		l.Phase(cfg, KindDAT, "", 0, datRows(cfg, TransportUDP)...),
		l.Phase(cfg, KindTCP, "", 0, tcpRows(cfg)...),
	}
	phases = append(phases, secureRows(cfg, l, 0, datRows(cfg, TransportUDP))...)
	if cfg.Full {
		phases = append(phases, l.Phase(cfg, KindStream, "", 0, streamRows(cfg, TransportUDP)...),
			l.Phase(cfg, KindDAT, "", 0, churnRow(cfg, TransportUDP)))
	}
	return filter(cfg, phases)
}

func rawRows(cfg *Options, op string) []Spec {
	return []Spec{
		cfg.row(op, result.Latency, TransportXDP, rawFrame),
		cfg.row(op, result.Rate, TransportXDP, rawFrame),
		cfg.row(op, result.Bandwidth, TransportXDP, frameSize(1500)),
	}
}

// frameSize returns the bytes of a full Ethernet frame.
func frameSize(mtu int) int64 { return int64(mtu) + 14 }

func datRows(cfg *Options, transport string) (rows []Spec) {
	for _, metric := range []string{result.Latency, result.Rate, result.Bandwidth} {
		rows = append(rows, rowsOf(cfg, metric, transport, Ops)...)
	}
	if cfg.Full {
		rows = append(rows, fullRows(cfg, transport)...)
	}
	return rows
}

func rowsOf(cfg *Options, metric, transport string, ops []string) (rows []Spec) {
	for _, op := range ops {
		rows = append(rows, cfg.row(op, metric, transport, sizeFor(metric)))
	}
	return rows
}

// fullConnections is the number of connections in the row with many connections, which --full adds. Each connection has
// its own windows and timers, but one thread serves all connections.
const fullConnections = 64

// fullRows returns the rows that --full adds to those of one link.
func fullRows(cfg *Options, transport string) []Spec {
	spread := cfg.row(result.Send, result.Rate, transport, defaultSize)
	spread.Connections = fullConnections
	return []Spec{spread, cfg.row(result.Send, result.Requests, transport, defaultSize)}
}

// churnRow returns the row with --churn. The row has ends of its own, because its heap would disturb other rows.
func churnRow(cfg *Options, transport string) Spec {
	churned := cfg.row(result.Send, result.Latency, transport, defaultSize)
	churned.Churn = int64(cmp.Or(cfg.Churn, ChurnSize))
	churned.Duration *= churnTimes
	return churned
}

func tcpRows(cfg *Options) (rows []Spec) {
	for _, metric := range []string{result.Latency, result.Rate, result.Bandwidth} {
		rows = append(rows, cfg.row(result.TCP, metric, transportTCP, sizeFor(metric)))
	}
	if cfg.Full {
		rows = append(rows, cfg.row(result.TCPSpin, result.Latency, transportTCP, defaultSize))
	}
	return rows
}

// streamRows returns the rows of package stream.
func streamRows(cfg *Options, transport string) (rows []Spec) {
	for _, metric := range []string{result.Latency, result.Rate, result.Bandwidth} {
		rows = append(rows, cfg.row(result.Stream, metric, transport, sizeFor(metric)))
	}
	return rows
}

func sizeFor(metric string) int64 {
	if metric == result.Bandwidth || metric == result.SHA256 {
		return streamSize
	}
	return defaultSize
}

// filter keeps the rows with a requested operation, metric and MTU, and puts them beside the requested busy loops. An
// empty list requests all rows.
func filter(cfg *Options, labs ...[]Phase) (kept [][]Phase) {
	for _, phases := range labs {
		var some []Phase
		for _, ph := range phases {
			ph.Rows = slices.DeleteFunc(ph.Rows, func(r Spec) bool {
				return !asked(cfg.Ops, r.Op) || !asked(cfg.Metrics, r.Metric) || !askedMTU(cfg.MTUs, r.MTU)
			})
			ph.Rows = cfg.besideLoops(ph.Rows)
			if len(ph.Rows) > 0 {
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

// MainJob returns the phases of the main job over a link.
func MainJob(cfg *Options, l Link) [][]Phase {
	if !cfg.Impair.Zero() {
		return impairedLabs(cfg, l)
	}
	if l.Transport == TransportXDP {
		return mainPhasesXDP(cfg, l)
	}
	return mainPhasesUDP(cfg, l)
}

// SelftestJob returns phases that transfer bytes and compare them, one phase for each MTU.
func SelftestJob(cfg *Options, l Link) [][]Phase {
	var phases []Phase
	mtus := cfg.MTUs
	if l.Transport == TransportUDP {
		mtus = []int{0}
	}
	for _, mtu := range mtus {
		var rows []Spec
		for _, op := range Ops {
			rows = append(rows, cfg.row(op, result.SHA256, l.Transport, streamSize))
		}
		phases = append(phases, l.Phase(cfg, KindDAT, "", mtu, rows...).Impaired(cfg.Impair.Text()))
	}
	return [][]Phase{phases}
}
