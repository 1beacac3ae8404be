package dat

import (
	"context"
	"log/slog"
	"sync"

	"github.com/datxdp/datxdp/wire"
)

// deviceObserver receives the reports of packages xdp and udplink about changes of the adapter's device. They call the
// methods in the goroutine in which they watch the device. Closing the device waits for that goroutine. So the methods
// take no lock that is held while a device is closed: each would wait for the other. They log in a new goroutine,
// because a log handler may call the adapter.
type deviceObserver struct {
	a      *adapter
	logger *slog.Logger
	kind   string        // "interface" or "address"
	name   func() string // returns the name of the interface, or the address
}

// Exclude takes the engine of a queue, runs f, and gives the engine up. So the engine does not use the queue's socket
// while f runs. If the adapter is closed, Exclude does not run f.
func (k *deviceObserver) Exclude(queue int, f func()) {
	if d := k.a.drivers[queue]; d.Own() {
		f()
		d.Disown()
	}
}

// Changed logs a change of the device. The log level is Warn if harmful is true, and Info otherwise. queue is the index
// of the receive queue that changed, or -1 if the change concerns the whole device.
func (k *deviceObserver) Changed(queue int, harmful bool, description string) {
	level, attrs := slog.LevelInfo, []any{k.kind, k.name(), "change", description}
	if harmful {
		level = slog.LevelWarn
	}
	if queue >= 0 {
		attrs = append(attrs, "queue", queue)
	}
	go k.logger.Log(context.Background(), level, "dat: the device changed", attrs...)
}

// Ended reports the end of the device to each open of the adapter and breaks every connection.
func (k *deviceObserver) Ended(why error) {
	k.a.endDevice(why)
	go k.logger.Error("dat: the device ended", k.kind, k.name(), "reason", why)
}

// endDevice queues EventAsyncIACatastrophic in each open of the adapter and breaks every connection. The contexts of the
// opens are done first, so a program that sees a broken connection finds the reason there.
func (a *adapter) endDevice(why error) {
	a.endReason.Store(&why)
	for _, ia := range a.openIAs.all() {
		ia.postAsync(EventAsyncIACatastrophic, ia, ReasonIAEnded)
		ia.end(why)
	}
	a.linkDown()
}

// linkDown breaks every connection of the adapter.
func (a *adapter) linkDown() {
	for _, d := range a.drivers {
		_ = d.runPolled(func(e *wire.Engine) error { // fails on a closed adapter, which has no connections
			e.LinkDown()
			return nil
		})
	}
}

// retireEnded removes the adapters whose device has ended from the registry, and closes their devices, so that these can
// be opened again before every open of such an adapter is closed. adaptersMu is held.
func retireEnded() {
	for key, a := range adapters {
		if a.endReason.Load() != nil {
			delete(adapters, key)
			a.linkDown() // endDevice may not have come to it
			_ = a.stop() // there is no open to which an error belongs
		}
	}
}

// Err returns the reason why the adapter stopped moving packets, such as a deleted interface or a removed address.
// While the adapter works, Err returns nil. When the adapter stops, each open gets EventAsyncIACatastrophic with
// ReasonIAEnded, and its Context is done. After that the only useful call is Close. Open does not share such an adapter:
// it opens the device again, if the device is back.
func (ia *IA) Err() error {
	if ia == nil {
		return errHandleIA
	}
	if why := ia.a.endReason.Load(); why != nil {
		return *why
	}
	return nil
}

// Context returns a context that is done when the adapter has ended (see Err), or when the IA is closed. context.Cause of
// it returns the reason: the error of Err, or one that wraps ErrAbort. A server whose waits end with this context ends with
// its device, so that a supervisor can restart it.
func (ia *IA) Context() context.Context { return ia.ctx }

// currentMode returns the current mode of the adapter. This is the granted mode or, if a queue has another mode, the
// mode of that queue.
func (a *adapter) currentMode() string {
	mode := a.attr.Mode
	for _, d := range a.drivers {
		if m := d.link.Caps().Mode; m != a.attr.Mode {
			mode = m
		}
	}
	return mode
}

// iaSet has the open IAs of an adapter.
type iaSet struct {
	mu  sync.Mutex
	ias map[*IA]struct{}
}

func (v *iaSet) add(ia *IA) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ias == nil {
		v.ias = make(map[*IA]struct{})
	}
	v.ias[ia] = struct{}{}
}

func (v *iaSet) remove(ia *IA) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.ias, ia)
}

func (v *iaSet) all() []*IA {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []*IA
	for ia := range v.ias {
		list = append(list, ia)
	}
	return list
}
