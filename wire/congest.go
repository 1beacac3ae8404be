package wire

import "github.com/datxdp/datxdp/wire/internal/seq"

// congestion decides how many packets of one connection may be in the network: slow start, additive
// increase, and a decrease at most once for each window of packets (RFC 5681, in packets).
type congestion struct {
	window  int // packets that may be in the network
	thresh  int // up to which the window grows by one for each acknowledged packet
	partial int // acknowledged packets towards the next increase above thresh
	prior   int // window before the last timeout; 0: nothing to restore
	recover seq.Num
}

func newCongestion(psn seq.Num) congestion {
	return congestion{window: firstWindow, thresh: maxWindow, recover: psn}
}

// acked grows the window for n acknowledged packets.
func (g *congestion) acked(n int) {
	if g.window < g.thresh {
		g.window = min(g.window+n, g.thresh)
		return
	}
	if g.partial += n; g.partial >= g.window {
		g.partial -= g.window
		g.window = min(g.window+1, maxWindow)
	}
}

// lost shrinks the window, once for the packets up to next.
func (g *congestion) lost(una, next seq.Num) {
	if una.Less(g.recover) {
		return
	}
	g.recover = next
	g.thresh = max(g.window*7/10, minWindow)
	g.window = g.thresh
}

// timedOut starts over, since nothing is known to be in the network.
func (g *congestion) timedOut(next seq.Num) {
	if g.prior == 0 {
		g.prior = g.window
	}
	g.thresh = max(g.prior/2, minWindow)
	g.window = minWindow
	g.recover = next
}

// late undoes timedOut: what was taken for lost had arrived, the peer was slow to say so.
func (g *congestion) late() {
	g.window = max(g.window, g.prior)
	g.thresh = max(g.thresh, g.window)
	g.prior = 0
}
