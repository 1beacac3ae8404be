package dat

import (
	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// driver has one engine of an adapter, the engine's link, and the progress.Driver that runs the engine.
type driver struct {
	progress.Driver
	eng  *wire.Engine
	link link.Link
}

func newDriver(h *wire.Host, l link.Link) (*driver, error) {
	eng, err := h.NewEngine(l, progress.Now())
	if err != nil {
		return nil, err
	}
	d := &driver{eng: eng, link: l}
	d.Init(eng, &eng.Token, l)
	return d, nil
}

// runPolled takes the engine, polls it, calls f, polls the engine again, and gives the engine up. It returns the error
// of f, or ErrInvalidHandle if the adapter is closed.
func (d *driver) runPolled(f func(*wire.Engine) error) (err error) {
	if !d.Do(func() { err = f(d.eng) }) {
		return ErrInvalidHandle
	}
	return err
}

// dropConn ends the connection of a freed endpoint. If the connection has not ended yet and mayPoll is true, dropConn
// also polls the engine, so that the disconnect is sent. If the connection has ended, it sends nothing, and dropConn
// does not poll. A poll would cost too much: each poll runs the timers of all connections, and a program may free
// thousands of endpoints.
func (d *driver) dropConn(c *wire.Conn, mayPoll bool) {
	run := d.With
	if s := c.State(); mayPoll && s != wire.Closed && s != wire.Idle {
		run = d.Do
	}
	run(func() { d.eng.Drop(c) }) // does nothing if the adapter is closed: its connections have ended
}

// waitReady waits until w is ready. At first, it polls the adapter's engines; later it sleeps. It returns
// ErrTimeoutExpired when the time limit has passed, and ErrInterruptedCall when doneCh is closed.
func (a *adapter) waitReady(w progress.Waiting, limit wire.Time, doneCh <-chan struct{}) error {
	switch a.engines.Wait(w, limit, doneCh) {
	case progress.TimedOut:
		return ErrTimeoutExpired
	case progress.Interrupted:
		return ErrInterruptedCall
	default:
		return nil
	}
}

// flush polls every engine, so that posted requests and disconnects are sent.
func (a *adapter) flush() {
	for _, d := range a.drivers {
		d.Do(func() {})
	}
}

// runHalted takes every engine of the adapter, calls f, and gives the engines up. It returns the error of f, or
// ErrInvalidHandle if the adapter is closed.
func (a *adapter) runHalted(f func() error) (err error) {
	if !a.engines.Halt(func() { err = f() }) {
		return ErrInvalidHandle
	}
	return err
}
