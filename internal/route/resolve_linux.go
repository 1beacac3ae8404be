package route

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// resolving is what the callers of Resolve and Known leave to goroutines of the Table. A request to the kernel waits for
// the kernel's lock of network settings (RTNL), which any user may be able to hold for many seconds. The wait is inside a
// system call, so no timeout of the socket ends it.
type resolving struct {
	asker     *asker                  // for query; needs no lock
	query     func(flow) (way, error) // asks the kernel
	wanted    []*Hop                  // callers of Resolve wait for them
	asking    bool                    // answerWanted runs
	unchecked map[*Hop]struct{}
	checkAt   time.Time // time of the next lookup of unchecked, if there are any
}

func newResolving() resolving { return resolving{unchecked: make(map[*Hop]struct{})} }

// lookup is a request for a route.
type lookup struct {
	done chan struct{} // closed after err was set
	err  error
}

// Known returns the route of UDP packets by the rules and routing tables, or the known one from an earlier lookup. The
// source address is not valid if the kernel is to choose it. Known does not wait: a goroutine asks the kernel soon, and
// corrects the hop. The neighbour may still be unknown; Hop.MAC reports when it is known. If no route through this
// interface leads to the address, the error matches ErrUnreachable.
//
// Known makes no system call.
func (t *Table) Known(src, dst netip.AddrPort) (*Hop, error) {
	f := flowOf(src, dst)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable(f.dst.Addr()); err != nil {
		return nil, err
	}
	h := t.hops[f]
	if h == nil || !h.known && h.via == nil {
		way, ok := t.fib.Load().way(f)
		if !ok {
			return nil, fmt.Errorf("route: resolve %v on %s: %w", dst.Addr(), t.Interface().Name, ErrUnreachable)
		}
		h = t.hop(f)
		t.direct(h, way)
		t.check(h, time.Now())
	}
	h.refs++
	return h, nil
}

// Local reports whether packets stay on this host, by the rules and routing tables. It makes no system call.
func (t *Table) Local(src, dst netip.AddrPort) bool {
	g, _ := t.fib.Load().find(flowOf(src, dst))
	return g.local
}

// Resolve returns the kernel's route of UDP packets. The source address is not valid if the kernel is to choose it.
// Resolve waits for the kernel's answer for at most limit. The error matches ErrNoAnswer if the time has passed, and
// ErrUnreachable if no route through this interface leads to the address. The neighbour may still be unknown; Hop.MAC
// reports when it is known.
func (t *Table) Resolve(src, dst netip.AddrPort, limit time.Duration) (*Hop, error) {
	f := flowOf(src, dst)
	t.mu.Lock()
	if err := t.usable(f.dst.Addr()); err != nil {
		t.mu.Unlock()
		return nil, err
	}
	h := t.hop(f)
	h.refs++
	if h.known {
		t.mu.Unlock()
		return h, nil
	}
	pending := t.ask(h)
	t.mu.Unlock()
	if err := t.wait(pending, limit); err != nil {
		t.Release(h)
		return nil, fmt.Errorf("route: resolve %v on %s: %w", dst.Addr(), t.Interface().Name, err)
	}
	return h, nil
}

// usable returns an error if the Table is closed or dst is no address. The caller holds mu.
func (t *Table) usable(dst netip.Addr) error {
	select {
	case <-t.done:
		return fmt.Errorf("route: resolve %v: %w", dst, net.ErrClosed)
	default:
	}
	if !dst.IsValid() || dst.IsUnspecified() {
		return fmt.Errorf("route: resolve %v: %w", dst, ErrUnreachable)
	}
	return nil
}

// wait waits until a lookup is done, and returns its error.
func (t *Table) wait(l *lookup, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-l.done:
		return l.err
	case <-t.done:
		return net.ErrClosed
	case <-timer.C:
		return ErrNoAnswer
	}
}

// hop returns the hop of a flow. The caller holds mu, and increments refs.
func (t *Table) hop(f flow) *Hop {
	h := t.hops[f]
	if h == nil {
		h = &Hop{flow: f}
		h.source.Store(new(netip.Addr))
		t.hops[f] = h
	}
	return h
}

// Release returns a hop from Resolve or Known.
func (t *Table) Release(h *Hop) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.refs--; h.refs > 0 {
		return
	}
	t.detach(h)
	delete(t.hops, h.flow)
	delete(t.unchecked, h)
	t.withdraw(h)
}

// ask makes a goroutine look up the route of a hop. The caller holds mu.
func (t *Table) ask(h *Hop) *lookup {
	if h.pending != nil {
		return h.pending
	}
	h.pending = &lookup{done: make(chan struct{})}
	t.wanted = append(t.wanted, h)
	if !t.asking {
		t.asking = true
		t.all.Go(t.answerWanted)
	}
	return h.pending
}

// withdraw cancels the lookup of a released hop. The caller holds mu.
func (t *Table) withdraw(h *Hop) {
	t.wanted = slices.DeleteFunc(t.wanted, func(w *Hop) bool { return w == h })
}

// answerWanted looks up the routes that callers of Resolve wait for, until there are none. It is the only goroutine of
// the Table that does this, so a kernel that does not answer occupies one thread.
func (t *Table) answerWanted() {
	for {
		t.mu.Lock()
		select {
		case <-t.done:
			t.wanted = nil // the callers wait for done too
		default:
		}
		if len(t.wanted) == 0 {
			t.asking = false
			t.mu.Unlock()
			return
		}
		next := t.wanted[0].flow
		t.mu.Unlock()
		t.learn(next, false)
	}
}

// learn looks up the route of a flow and directs its hop, if it still has one. If the kernel does not answer, the known
// state stays. Only lookupDue sets again: a result that another goroutine has waited for does not replace a known
// route, because it may be older.
func (t *Table) learn(f flow, again bool) {
	way, err := t.query(f)
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hops[f]
	if h == nil {
		return
	}
	if answered := err == nil || errors.Is(err, ErrUnreachable); answered && (again || !h.known) {
		t.direct(h, way)
		h.known = h.known || err == nil
	}
	delete(t.unchecked, h)
	if l := h.pending; l != nil {
		h.pending = nil
		t.withdraw(h)
		l.err = err
		close(l.done)
	}
}

// check plans the lookup of a hop that has a route from the table of prefixes. The delay makes one wake-up of keep
// sufficient for many hops, and none is looked up that is released soon. The caller holds mu.
func (t *Table) check(h *Hop, now time.Time) {
	if len(t.unchecked) == 0 {
		t.checkAt = now.Add(settle)
		t.pokeKeeper()
	}
	t.unchecked[h] = struct{}{}
}

// checkDue looks up the routes of unchecked hops, if that is due.
func (t *Table) checkDue(now time.Time) {
	t.mu.Lock()
	var due []flow
	if !now.Before(t.checkAt) {
		for h := range t.unchecked {
			due = append(due, h.flow)
		}
		clear(t.unchecked)
	}
	t.mu.Unlock()
	for _, f := range due {
		t.learn(f, false)
	}
}

// nextLookup returns the time of the next lookup of unchecked hops or of all. The caller holds mu.
func (t *Table) nextLookup() time.Time {
	at := t.lookupAt()
	if len(t.unchecked) > 0 && t.checkAt.Before(at) {
		return t.checkAt
	}
	return at
}
