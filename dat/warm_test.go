package dat

import (
	"sync"
)

// A conformance test checks many rules, each of which needs a device. warmDevices keeps devices open from one rule to
// the next, because the kernel needs some time to open a device and more time to release a queue. For a rule that needs
// other options, the device is opened anew.
var warmDevices warmer

type warmer struct {
	mu   sync.Mutex
	on   bool
	port uint16 // port of the UDP network
	held [2]*IA
	cold [2]bool // the rule has the device to itself
}

// begin is called at the beginning of a rule.
func (w *warmer) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on, w.cold = true, [2]bool{}
	testQual += 16
}

// end closes the devices that are kept open.
func (w *warmer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on, w.port, testQual = false, 0, firstQual
	for side := range w.held {
		w.cool(side)
	}
}

// leave keeps the devices of a rule open for the next rule.
func (w *warmer) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for side := range w.held {
		w.cool(side)
	}
}

// ready is called before the rule opens a device.
func (w *warmer) ready(side int, o Options, open func() (*IA, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch plain := o.Limits == (Limits{}) && o.Wrap == nil && o.Queues == 0; {
	case !w.on:
	case !plain:
		w.cool(side)
	case !w.cold[side] && w.held[side] == nil:
		if ia, err := open(); err == nil { // otherwise the rule gets the error
			w.held[side] = ia
		}
	}
}

// cool is called with mu held.
func (w *warmer) cool(side int) {
	w.cold[side] = true
	if ia := w.held[side]; ia != nil {
		_ = ia.Close() // the rule gets the error when it opens the device
		w.held[side] = nil
	}
}

// mendsLimits restores the limits of the adapter at the end of the rule.
func (h *host) mendsLimits() {
	a, was := h.ia.a, h.ia.a.attr
	h.t.Cleanup(func() { a.attr = was })
}
