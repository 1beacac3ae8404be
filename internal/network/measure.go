package network

import (
	"slices"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// meter measures flows from a moment on.
type meter struct {
	world *World
	flows []*flow
	begin int64
	infos []wire.ConnInfo
	sent  uint64 // packets that the senders have sent
	stats wire.Counters
}

// measure begins to measure flows, and sets the counters of the ports to zero.
func (w *World) measure(flows []*flow) *meter {
	w.net.ResetPorts()
	return &meter{world: w, flows: flows, begin: w.now(), infos: infos(flows), sent: sent(flows), stats: counters(flows)}
}

// measureRates begins to measure the rates of flows only.
func (w *World) measureRates(flows []*flow) *meter {
	return &meter{world: w, flows: flows, begin: w.now(), infos: infos(flows)}
}

func (m *meter) seconds() float64 { return float64(m.world.now()-m.begin) / 1e9 }

// rates returns the rate of each flow in bits of payload per second. It counts acknowledged packets as full.
func (m *meter) rates() []float64 {
	rates := make([]float64, len(m.flows))
	for i, now := range infos(m.flows) {
		packets := int32(now.SendOldest - m.infos[i].SendOldest)
		rates[i] = float64(packets) * float64(now.MTU-packetOverhead) * 8 / m.seconds()
	}
	return rates
}

// dropped returns the share of the senders' packets that the port of a host has dropped.
func (m *meter) dropped(at *host) float64 {
	return float64(m.world.net.Port(at.link.Local()).Drops) / max(float64(sent(m.flows)-m.sent), 1)
}

// timeouts returns the number of retransmission timeouts for each flow.
func (m *meter) timeouts() float64 {
	return float64(counters(m.flows).Timeouts-m.stats.Timeouts) / float64(len(m.flows))
}

// again returns the share of packets that were sent again.
func (m *meter) again() float64 {
	return float64(counters(m.flows).Retransmits-m.stats.Retransmits) / max(float64(sent(m.flows)-m.sent), 1)
}

// blackHoles returns how often a path was taken for a black hole, since the world began.
func (m *meter) blackHoles() uint64 { return counters(m.flows).BlackHoles }

// sendersOf returns the hosts at which flows begin.
func sendersOf(flows []*flow) (hosts []*host) {
	for _, f := range flows {
		if !slices.Contains(hosts, f.from) {
			hosts = append(hosts, f.from)
		}
	}
	return hosts
}

func sent(flows []*flow) (n uint64) {
	for _, h := range sendersOf(flows) {
		n += h.link.Sent()
	}
	return n
}

func counters(flows []*flow) (c wire.Counters) {
	for _, h := range sendersOf(flows) {
		s := h.engine.Stats()
		c.Timeouts += s.Timeouts
		c.Retransmits += s.Retransmits
		c.BlackHoles += s.BlackHoles
	}
	return c
}

// received returns the bytes of payload that a host has placed.
func received(h *host) float64 { s := h.engine.Stats(); return float64(s.RxBytes) }

// jain returns Jain's fairness index: 1 if all rates are equal, 1/n if one has everything.
func jain(rates []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range rates {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(rates)) * squares)
}

// quantile returns the value below which the share q of the values is, in microseconds.
func quantile(took []time.Duration, q float64) float64 {
	if len(took) == 0 {
		return 0
	}
	s := slices.Clone(took)
	slices.Sort(s)
	return float64(s[min(int(q*float64(len(s))), len(s)-1)]) / 1e3
}

func median(x []float64) float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
