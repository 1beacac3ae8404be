package plan

import (
	"math/rand/v2"

	"github.com/datxdp/datxdp/internal/result"
	"github.com/datxdp/datxdp/internal/tap"
)

// Impairment is a flag value: what an adapter does to the packets that it receives.
type Impairment struct{ tap.Rates }

// Set draws a seed where none is given. The report names it, so that a run can be made again.
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

// Text is the impairment as rows and stations carry it; empty for none.
func (i *Impairment) Text() string {
	if i.Zero() {
		return ""
	}
	return i.String()
}

// Passes are the impairments under which each row is measured: none, and this one if it is set.
func (i *Impairment) Passes() []string {
	if i.Zero() {
		return []string{""}
	}
	return []string{"", i.Text()}
}

// LossRate is the part of the packets that are lost: dropped, or damaged so that a checksum fails.
func LossRate(r tap.Rates) float64 { return 1 - (1-r.Loss)*(1-r.Corrupt) }

// Impaired returns the phase with an impairment at both ends and in its rows.
func (ph Phase) Impaired(text string) Phase {
	ph.Target.Impair, ph.Initiator.Impair = text, text
	for i := range ph.Rows {
		ph.Rows[i].Impair = text
	}
	return ph
}

// plainly is the phase with packets no larger than the MTU: kernel TCP without super-frames.
func (ph Phase) plainly() Phase {
	ph.Plain = true
	return ph
}

// impairedLabs are the rows of the main job that an impairment is judged by: each as the network is
// and impaired, and kernel TCP beside them where packets are lost.
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
			phases = append(phases, l.Phase(cfg, KindTCP, "", mtu, tcp()...).Impaired(text).plainly())
		}
		slow := phases[len(phases)-1].Rows
		for i := range slow {
			slow[i].Duration *= patientRows
		}
	}
	return filter(cfg, phases)
}
