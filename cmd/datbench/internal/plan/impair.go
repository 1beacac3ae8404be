package plan

import (
	"math/rand/v2"

	"github.com/datxdp/datxdp/cmd/datbench/internal/tap"
	"github.com/datxdp/datxdp/internal/result"
)

// Impairment is a flag value: the rates at which an adapter drops, duplicates, reorders or damages the packets that it
// receives.
type Impairment struct{ tap.Rates }

// Set parses the rates. If the user gave no seed, Set chooses a seed. The report contains the seed, so that the run can
// be repeated.
func (i *Impairment) Set(s string) error {
	rates, err := tap.Parse(s)
	if err != nil {
		return err
	}
	if !rates.Zero() && rates.Seed == 0 {
		rates.Seed = 1 + rand.Uint64N(maxSeed)
	}
	i.Rates = rates
	return nil
}

func (*Impairment) Type() string { return "rates" }

// Text returns the impairment in the form that rows and stations use; empty for none.
func (i *Impairment) Text() string {
	if i.Zero() {
		return ""
	}
	return i.String()
}

// Passes returns the impairments under which each row is measured: none, and this one if it is set.
func (i *Impairment) Passes() []string {
	if i.Zero() {
		return []string{""}
	}
	return []string{"", i.Text()}
}

// LossRate returns the fraction of packets that are lost. A damaged packet is lost too, because its checksum is wrong.
func LossRate(r tap.Rates) float64 { return 1 - (1-r.Loss)*(1-r.Corrupt) }

// Impaired returns the phase with the impairment at both ends and in its rows.
func (ph Phase) Impaired(text string) Phase {
	ph.Target.Impair, ph.Initiator.Impair = text, text
	for i := range ph.Rows {
		ph.Rows[i].Impair = text
	}
	return ph
}

// withoutOffloads returns the phase with TSO and GRO switched off, so that kernel TCP sends no packet larger than the
// MTU.
func (ph Phase) withoutOffloads() Phase {
	ph.NoOffloads = true
	return ph
}

// impairedLabs returns the phases of the main job with --impair. Each row is measured without and with the impairment.
// If the impairment drops packets, kernel TCP is measured too.
func impairedLabs(cfg *Options, l Link) [][]Phase {
	mtu := 0
	if l.Transport == TransportXDP {
		mtu = 1500
	}
	dat := func() []Spec {
		return []Spec{cfg.row(result.Write, result.Bandwidth, l.Transport, streamSize), cfg.row(result.Send, result.Latency, l.Transport, impairedSize)}
	}
	tcp := func() []Spec {
		return []Spec{cfg.row(result.TCP, result.Bandwidth, transportTCP, streamSize), cfg.row(result.TCP, result.Latency, transportTCP, impairedSize)}
	}
	var phases []Phase
	for _, text := range cfg.Impair.Passes() {
		phases = append(phases, l.Phase(cfg, KindDAT, "", mtu, dat()...).Impaired(text))
	}
	if LossRate(cfg.Impair.Rates) > 0 {
		for _, text := range cfg.Impair.Passes() {
			phases = append(phases, l.Phase(cfg, KindTCP, "", mtu, tcp()...).Impaired(text).withoutOffloads())
		}
		slow := phases[len(phases)-1].Rows
		for i := range slow {
			slow[i].Duration *= tcpLossTimes
		}
	}
	return filter(cfg, phases)
}
