package main

import (
	"math/rand/v2"

	"github.com/datxdp/datxdp/internal/result"
	"github.com/datxdp/datxdp/internal/tap"
)

// impairment is a flag value: what an adapter does to the packets that it receives.
type impairment struct{ tap.Rates }

// Set draws a seed where none is given. The report names it, so that a run can be made again.
func (i *impairment) Set(s string) error {
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

func (*impairment) Type() string { return "rates" }

// text is what rows and stations say of it; empty for none.
func (i *impairment) text() string {
	if i.Zero() {
		return ""
	}
	return i.String()
}

// passes are what each row is measured under: as the network is, and impaired if that is asked for.
func (i *impairment) passes() []string {
	if i.Zero() {
		return []string{""}
	}
	return []string{"", i.text()}
}

// lost is the part of the packets that a checksum keeps from the receiver, or that never come.
func lost(r tap.Rates) float64 { return 1 - (1-r.Loss)*(1-r.Corrupt) }

// impaired is the phase under an impairment, which its rows say.
func (ph phase) impaired(text string) phase {
	ph.target.Impair, ph.initiator.Impair = text, text
	for i := range ph.rows {
		ph.rows[i].Impair = text
	}
	return ph
}

// plainly is the phase with packets no larger than the MTU: kernel TCP without super-frames.
func (ph phase) plainly() phase {
	ph.plain = true
	return ph
}

// impairedLabs are the rows of the main job that an impairment is judged by: each as the network is
// and impaired, and kernel TCP beside them where packets are lost.
func impairedLabs(cfg *options, l link) [][]phase {
	mtu := 0
	if l.transport == transportXDP {
		mtu = 1500
	}
	dat := func() []Spec {
		return []Spec{cfg.row(result.Write, result.Bandwidth, l.transport, streamSize), cfg.row(result.Send, result.Latency, l.transport, impairedSize)}
	}
	tcp := func() []Spec {
		return []Spec{cfg.row(result.TCP, result.Bandwidth, transportTCP, streamSize), cfg.row(result.TCP, result.Latency, transportTCP, impairedSize)}
	}
	var phases []phase
	for _, text := range cfg.impair.passes() {
		phases = append(phases, l.phase(cfg, kindDAT, "", mtu, dat()...).impaired(text))
	}
	if lost(cfg.impair.Rates) > 0 {
		for _, text := range cfg.impair.passes() {
			phases = append(phases, l.phase(cfg, kindTCP, "", mtu, tcp()...).impaired(text).plainly())
		}
		slow := phases[len(phases)-1].rows
		for i := range slow {
			slow[i].Duration *= patientRows
		}
	}
	return filter(cfg, phases)
}
