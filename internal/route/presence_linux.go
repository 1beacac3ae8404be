package route

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/vishvananda/netlink"
)

// presence tells whether this host has the source address of a Reach.
type presence struct {
	zone    int // index of the interface that the zone of the source names; 0 for none
	present atomic.Bool
	news    chan struct{} // has a token after present has changed
}

// Present reports whether this host has the source address. A tentative address counts.
func (r *Reach) Present() bool { return r.present.Load() }

// Changes returns a channel that has a token when the result of Present has changed. One goroutine receives the tokens.
func (r *Reach) Changes() <-chan struct{} { return r.news }

// openPresence reads the addresses for the first time.
//
// System calls: sendto, recvfrom (netlink).
func (r *Reach) openPresence() error {
	if name := r.source.Addr().Zone(); name != "" {
		l, err := r.handle.LinkByName(name)
		if err != nil {
			return fmt.Errorf("route: find interface %s: %w", name, err)
		}
		r.zone = l.Attrs().Index
	}
	return r.readPresence()
}

// readPresence reads the addresses of all interfaces.
//
// System calls: sendto, recvfrom (netlink).
func (r *Reach) readPresence() error {
	list, err := listAddrs(r.handle, nil)
	if err != nil {
		return fmt.Errorf("route: list addresses: %w", err)
	}
	source := r.source.Addr().WithZone("")
	now := slices.ContainsFunc(list, func(a netlink.Addr) bool {
		return address(a.IP) == source && (r.zone == 0 || a.LinkIndex == r.zone)
	})
	if r.present.Swap(now) != now {
		select {
		case r.news <- struct{}{}:
		default:
		}
	}
	return nil
}
