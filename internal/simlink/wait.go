package simlink

import (
	"sync"
	"time"
)

// gate lets goroutines sleep in Wait. The mailbox's lock guards it.
type gate struct {
	woken    bool // a Wake without a Wait in progress
	sleepers []*sleeper
	wakeups  uint64
}

// sleeper is one goroutine in Wait. bell has room for one element, so that sending never blocks.
type sleeper struct {
	bell  chan struct{}
	timer *time.Timer
}

var sleepers = sync.Pool{New: func() any {
	return &sleeper{bell: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
}}

// open releases every sleeper and reports whether there was one.
func (g *gate) open() bool {
	if len(g.sleepers) == 0 {
		return false
	}
	for i, s := range g.sleepers {
		s.bell <- struct{}{}
		g.sleepers[i] = nil
	}
	g.sleepers = g.sleepers[:0]
	return true
}

func (g *gate) remove(s *sleeper) {
	for i, o := range g.sleepers {
		if o == s {
			last := len(g.sleepers) - 1
			g.sleepers[i], g.sleepers[last] = g.sleepers[last], nil
			g.sleepers = g.sleepers[:last]
			return
		}
	}
}

// Wait implements link.Link. In virtual time it returns at once, because nothing can arrive before the caller advances
// the clock.
func (l *Link) Wait(d time.Duration) {
	if !l.cfg.Immediate {
		return
	}
	m := &l.rx
	m.mu.Lock()
	if m.gate.woken || m.closed || m.pending.Load() != 0 || d == 0 {
		m.gate.woken = false
		m.mu.Unlock()
		return
	}
	s := sleepers.Get().(*sleeper)
	m.gate.sleepers = append(m.gate.sleepers, s)
	m.gate.wakeups++
	m.mu.Unlock()

	s.sleep(d)

	m.mu.Lock()
	m.gate.remove(s)
	m.mu.Unlock()
	select { // the bell may have rung after the timeout
	case <-s.bell:
	default:
	}
	sleepers.Put(s)
}

func (s *sleeper) sleep(d time.Duration) {
	if d < 0 {
		<-s.bell
		return
	}
	s.timer.Reset(d)
	select {
	case <-s.bell:
	case <-s.timer.C:
	}
	s.timer.Stop()
}

// Wake implements link.Link.
func (l *Link) Wake() {
	l.rx.mu.Lock()
	if !l.rx.gate.open() {
		l.rx.gate.woken = true
	}
	l.rx.mu.Unlock()
}
