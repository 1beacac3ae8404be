package stream

import (
	"sync"
	"time"
)

// deadline is a time that may be moved while goroutines wait for it.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	over  chan struct{} // closed when the time has come, and replaced when it is moved then; nil before the first use
}

// channel returns a channel that is closed at the deadline.
func (d *deadline) channel() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.renew()
	return d.over
}

// renew makes the channel, unless there is one. mu is held.
func (d *deadline) renew() {
	if d.over == nil {
		d.over = make(chan struct{})
	}
}

// set moves the deadline. The zero time means never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.over // the timer has fired and closes it
	}
	d.timer = nil
	d.renew()
	select {
	case <-d.over:
		d.over = make(chan struct{})
	default:
	}
	over := d.over
	switch left := time.Until(t); {
	case t.IsZero():
	case left <= 0:
		close(over)
	default:
		d.timer = time.AfterFunc(left, func() { close(over) })
	}
}
