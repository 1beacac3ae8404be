package dat

import (
	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// driver is an engine of an adapter, its link, and the progress.Driver that runs the engine.
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

// do calls f while it owns the engine, then polls the engine. It returns the error of f, or ErrInvalidHandle if the
// adapter is closed.
func (d *driver) do(f func(*wire.Engine) error) (err error) {
	if !d.Do(func() { err = f(d.eng) }) {
		return ErrInvalidHandle
	}
	return err
}

// drop ends a connection whose endpoint the consumer frees. It polls the engine only if poll is set and the
// connection has not ended, because an ended connection sends nothing more. Without that exception, freeing thousands
// of endpoints would run the timers of all other connections for each of them.
func (d *driver) drop(c *wire.Conn, poll bool) {
	run := d.With
	if s := c.State(); poll && s != wire.Closed && s != wire.Idle {
		run = d.Do
	}
	run(func() { d.eng.Drop(c) }) // a closed adapter has dropped the connection already
}

// park drives the engines of the adapter until w is ready. It returns ErrTimeoutExpired at the limit, and
// ErrInterruptedCall when done is closed.
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

// flush sends what was posted and what ended connections have to say, on every engine.
func (a *adapter) flush() {
	for _, d := range a.drivers {
		d.Do(func() {})
	}
}

// halted calls f while it owns every engine of the adapter. It returns the error of f, or ErrInvalidHandle if the
// adapter is closed.
func (a *adapter) halted(f func() error) (err error) {
	if !a.engines.Halt(func() { err = f() }) {
		return ErrInvalidHandle
	}
	return err
}
