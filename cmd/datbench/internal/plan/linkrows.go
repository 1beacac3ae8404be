package plan

import "github.com/datxdp/datxdp/internal/result"

// Modes of an adapter over XDP.
const (
	ModeZeroCopy = "zero-copy"
	ModeCopy     = "copy"
	ModeGeneric  = "generic"
)

// labModes are the modes of the lab's interfaces. A veth has no zero-copy mode.
var labModes = []string{ModeCopy, ModeGeneric}

// LinksJob returns the phases that compare the links of a lab: each mode over XDP, and kernel UDP. A link has the same
// rows: round trips, messages, streams, and kernel TCP while the adapters are open. Kernel TCP alone is measured first.
func LinksJob(cfg *Options, l Link) [][]Phase {
	phases := []Phase{l.Phase(cfg, KindTCP, "", 1500, cfg.row(result.TCP, result.Bandwidth, transportTCP, streamSize))}
	for _, mode := range labModes {
		phases = append(phases, linkPhases(cfg, l.inMode(mode), mode, mode)...)
	}
	return [][]Phase{append(phases, linkPhases(cfg, l.overUDP(), TransportUDP, "")...)}
}

// inMode returns the same link with adapters whose names request a mode.
func (l Link) inMode(mode string) Link {
	for _, e := range []*End{&l.Target, &l.Initiator} {
		e.IA += "," + mode
	}
	return l
}

// linkPhases returns the phases of one link. mode is the mode that must be granted, and asked is the mode in the
// identity of the rows; it is empty if their transport tells the mode.
func linkPhases(cfg *Options, l Link, mode, asked string) []Phase {
	rows := func(asked string, rows ...Spec) []Spec {
		for i := range rows {
			rows[i].AskedMode, rows[i].WantMode = asked, mode
		}
		return rows
	}
	stream := cfg.row(result.Write, result.Bandwidth, l.Transport, streamSize)
	return []Phase{
		l.Phase(cfg, KindDAT, "", 1500, rows(asked, cfg.row(result.Send, result.Latency, l.Transport, defaultSize),
			cfg.row(result.Send, result.Rate, l.Transport, defaultSize), stream)...),
		l.Phase(cfg, KindTCPShared, "", 1500, rows(mode, cfg.row(result.TCPShared, result.Bandwidth, transportTCP, streamSize))...),
		l.Phase(cfg, KindDAT, "", commonJumbo, rows(asked, stream)...),
	}
}
