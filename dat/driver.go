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

// This method takes the engine, polls it, calls f, polls the engine again, and gives the engine up. It returns the
// error of f, or ErrInvalidHandle if the adapter is closed.
func (d *driver) do(f func(*wire.Engine) error) (err error) {
	if !d.Do(func() { err = f(d.eng) }) {
		return ErrInvalidHandle
	}
	return err
}

// The method drop ends the connection of a freed endpoint. If the connection has not ended yet and poll is true, drop
// also polls the engine, so that the disconnect is sent. If the connection has ended, it sends nothing, and drop does
// not poll. A poll would cost too much: each poll runs the timers of all connections, and a program may free thousands
// of endpoints.
func (d *driver) drop(c *wire.Conn, poll bool) {
	run := d.With
	if s := c.State(); poll && s != wire.Closed && s != wire.Idle {
		run = d.Do
	}
	run(func() { d.eng.Drop(c) }) // does nothing if the adapter is closed: its connections have ended
}

// The method park waits until w is ready. At first, it polls the adapter's engines; later it sleeps. It returns
// ErrTimeoutExpired when the time limit has passed, and ErrInterruptedCall when the channel done is closed.
func (a *adapter) park(w progress.Waiting, limit wire.Time, done <-chan struct{}) error {
	switch a.engines.Wait(w, limit, done) {
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

// The method halted takes every engine of the adapter, calls f, and gives the engines up. It returns the error of f, or
// ErrInvalidHandle if the adapter is closed.
func (a *adapter) halted(f func() error) (err error) {
	if !a.engines.Halt(func() { err = f() }) {
		return ErrInvalidHandle
	}
	return err
}
