package dat

import (
	"context"
	"log/slog"
	"sync"

	"github.com/datxdp/datxdp/wire"
)

// keeper does for a device that is watched what only its adapter can do. Its methods are called by the device's own
// goroutine, which closing the device awaits: it takes no lock that is held meanwhile, and logs from another goroutine,
// since a handler may call the adapter.
type keeper struct {
	a    *adapter
	log  *slog.Logger
	name func() string // of the interface
}

// Exclude runs f while nobody drives the engine of a queue.
func (k *keeper) Exclude(queue int, f func()) {
	if d := k.a.drivers[queue]; d.Own() {
		f()
		d.Disown()
	}
}

// Changed logs what was followed.
func (k *keeper) Changed(queue int, bad bool, text string) {
	level, attrs := slog.LevelInfo, []any{"interface", k.name(), "change", text}
	if bad {
		level = slog.LevelWarn
	}
	if queue >= 0 {
		attrs = append(attrs, "queue", queue)
	}
	go k.log.Log(context.Background(), level, "dat: the device changed", attrs...)
}

// Ended breaks every connection and tells each open of the adapter.
func (k *keeper) Ended(why error) {
	k.a.end(why)
	go k.log.Error("dat: the device ended", "interface", k.name(), "reason", why)
}

// end breaks every connection of the adapter and raises an asynchronous error in each of its opens.
func (a *adapter) end(why error) {
	a.ended.Store(&why)
	for _, d := range a.drivers {
		_ = d.do(func(e *wire.Engine) error { // fails on an adapter that is closed, which has no connections
			e.LinkDown()
			return nil
		})
	}
	for _, ia := range a.views.all() {
		ia.raise(EventAsyncIACatastrophic, ia, ReasonIAEnded)
	}
}

// Err is why the adapter moves packets no more: its interface was deleted, its address removed, or the like. Nil as long as
// it does. EventAsyncIACatastrophic with ReasonIAEnded tells when. Closing is all that is left then.
func (ia *IA) Err() error {
	if ia == nil {
		return errHandleIA
	}
	if why := ia.a.ended.Load(); why != nil {
		return *why
	}
	return nil
}

// mode is how packets move now: the least of any queue.
func (a *adapter) mode() string {
	mode := a.attr.Mode
	for _, d := range a.drivers {
		if m := d.link.Caps().Mode; m != a.attr.Mode {
			mode = m
		}
	}
	return mode
}

// views are the opens of an adapter.
type views struct {
	mu  sync.Mutex
	ias map[*IA]struct{}
}

func (v *views) add(ia *IA) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ias == nil {
		v.ias = make(map[*IA]struct{})
	}
	v.ias[ia] = struct{}{}
}

func (v *views) remove(ia *IA) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.ias, ia)
}

func (v *views) all() []*IA {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []*IA
	for ia := range v.ias {
		list = append(list, ia)
	}
	return list
}
