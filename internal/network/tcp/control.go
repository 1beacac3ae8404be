package tcp

import "math"

// Control decides the congestion window of a Sender. Windows are in segments, times in seconds.
type Control interface {
	// grow enlarges the window after n segments were acknowledged outside of recovery.
	grow(w *window, n int)
	// lost returns the share of the window that a loss leaves.
	lost(w *window) float64
	// marked notes n acknowledged segments, and whether they were marked. If the round ends, it returns the share of the
	// window that the marks of the round leave.
	marked(n int, ce, ends bool) float64
}

// window is a congestion window.
type window struct {
	cwnd, ssthresh float64
	now            float64
	srtt           float64
}

// slowStart grows the window below ssthresh (RFC 5681 §3.1). It returns the number of segments that are left for
// congestion avoidance.
func (w *window) slowStart(n int) int {
	if w.cwnd >= w.ssthresh {
		return n
	}
	grown := min(float64(n), w.ssthresh-w.cwnd)
	w.cwnd += grown
	return n - int(math.Ceil(grown))
}

// NewReno is the congestion control of RFC 5681.
type NewReno struct{}

func (NewReno) grow(w *window, n int) {
	if n = w.slowStart(n); n > 0 {
		w.cwnd += float64(n) / w.cwnd
	}
}

func (NewReno) lost(*window) float64 { return 0.5 }

func (NewReno) marked(int, bool, bool) float64 { return 1 }

// Cubic is the congestion control of RFC 9438.
type Cubic struct {
	wMax  float64 // window before the last reduction
	prior float64 // the same, not lowered by fast convergence
	k     float64 // time in which the window grows back to wMax
	epoch float64 // when congestion avoidance began; 0: not yet
	wEst  float64 // window of Reno
}

// Constants of RFC 9438 §4.
const (
	cubicC    = 0.4
	cubicBeta = 0.7
)

func (c *Cubic) grow(w *window, n int) {
	if n = w.slowStart(n); n <= 0 {
		return
	}
	if c.epoch == 0 {
		c.epoch, c.wEst = w.now, w.cwnd
		c.wMax = max(c.wMax, w.cwnd)
		c.k = math.Cbrt((c.wMax - w.cwnd) / cubicC)
	}
	alpha := 1.0
	if c.wEst < c.prior {
		alpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
	}
	c.wEst += alpha * float64(n) / w.cwnd
	at := func(t float64) float64 { return cubicC*math.Pow(t-c.k, 3) + c.wMax }
	if t := w.now - c.epoch; at(t) < c.wEst {
		w.cwnd = max(w.cwnd, c.wEst)
	} else {
		target := min(max(at(t+w.srtt), w.cwnd), 1.5*w.cwnd)
		w.cwnd += float64(n) * (target - w.cwnd) / w.cwnd
	}
}

func (c *Cubic) lost(w *window) float64 {
	c.epoch, c.prior = 0, w.cwnd
	if w.cwnd < c.wMax { // fast convergence
		c.wMax = w.cwnd * (1 + cubicBeta) / 2
	} else {
		c.wMax = w.cwnd
	}
	return cubicBeta
}

func (*Cubic) marked(int, bool, bool) float64 { return 1 }

// DCTCP is the congestion control of RFC 8257. It answers losses as NewReno does.
type DCTCP struct {
	NewReno
	alpha        float64 // smoothed share of marked segments
	acked, marks int     // in this round
}

// dctcpGain is the weight of the last round in alpha (RFC 8257 §4.2).
const dctcpGain = 1.0 / 16

// NewDCTCP returns the state at the beginning of a connection.
func NewDCTCP() *DCTCP { return &DCTCP{alpha: 1} }

func (d *DCTCP) marked(n int, ce, ends bool) float64 {
	d.acked += n
	if ce {
		d.marks += n
	}
	if !ends {
		return 1
	}
	share := float64(d.marks) / float64(max(d.acked, 1))
	d.alpha += (share - d.alpha) * dctcpGain
	d.acked, d.marks = 0, 0
	if share == 0 {
		return 1
	}
	return 1 - d.alpha/2
}
