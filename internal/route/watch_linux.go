package route

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
)

const (
	lowerUp      = 1 << 16 // IFF_LOWER_UP of linux/if.h
	newNamespace = 45      // IFLA_NEW_NETNSID of linux/if_link.h
)

// watch applies the kernel's messages until the socket is closed.
//
// System calls: recvfrom (netlink).
func (t *Table) watch() {
	for {
		messages, from, err := t.events.Receive()
		select {
		case <-t.done:
			return
		default:
		}
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil: // ENOBUFS: messages were lost
			t.resync()
		case from.Pid == nl.PidKernel:
			for i := range messages {
				t.apply(&messages[i])
			}
		}
	}
}

// apply takes in one message. What cannot be parsed is skipped: the kernel does not send such.
func (t *Table) apply(m *syscall.NetlinkMessage) {
	switch m.Header.Type {
	case syscall.RTM_NEWNEIGH, syscall.RTM_DELNEIGH:
		if n, err := netlink.NeighDeserialize(m.Data); err == nil {
			t.mu.Lock()
			t.sight(n, m.Header.Type == syscall.RTM_DELNEIGH, time.Now())
			t.mu.Unlock()
		}
	case syscall.RTM_NEWLINK, syscall.RTM_DELLINK:
		if info := nl.DeserializeIfInfomsg(m.Data); info.Index == int32(t.index) {
			gone := Present
			if m.Header.Type == syscall.RTM_DELLINK && info.Family == syscall.AF_UNSPEC {
				gone = fate(m.Data)
			}
			t.interfaceChanged(gone)
		}
	case syscall.RTM_NEWADDR, syscall.RTM_DELADDR:
		t.interfaceChanged(Present)
	case syscall.RTM_NEWROUTE, syscall.RTM_DELROUTE:
		t.mu.Lock()
		t.routesDue(time.Now())
		t.mu.Unlock()
	}
}

// interfaceChanged reads the interface again and has routes and unresolved neighbours done at once.
// An interface that is gone keeps its last state, down; gone is what the messages say of it. One that is missing
// before a message said so may still turn out to have moved.
func (t *Table) interfaceChanged(gone Fate) {
	if err := t.readInterface(true); err != nil {
		t.leave(gone)
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.neighbours {
		if n.mac == 0 {
			n.kickAt, n.pause = now, 0
		}
	}
	t.routesDue(now)
}

// missing reports whether the interface is still there, for when messages were lost.
func (t *Table) missing() Fate {
	_, err := t.handle.LinkByIndex(t.index)
	if errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, syscall.ENODEV) {
		return Deleted
	}
	return Present
}

// leave marks the interface as down and notes where it went, unless that is known.
func (t *Table) leave(to Fate) {
	t.read.Lock()
	defer t.read.Unlock()
	last := t.Interface()
	last.Up, last.Carrier = false, false
	if last.Gone == Present {
		last.Gone = to
	}
	t.iface.Store(&last)
	t.tell()
}

// fate reads where an interface went from the message that took it away.
func fate(message []byte) Fate {
	attrs, err := nl.ParseRouteAttr(message[syscall.SizeofIfInfomsg:])
	if err != nil {
		return Deleted
	}
	for _, a := range attrs {
		if a.Attr.Type == newNamespace {
			return Moved
		}
	}
	return Deleted
}

// tell leaves a token in Changes.
func (t *Table) tell() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// resync reads everything again. An error leaves what is known; the next message or recheck mends.
func (t *Table) resync() {
	t.interfaceChanged(t.missing())
	_ = t.readNeighbours()
}

// readInterface reads the interface, and says so in Changes if it is told to.
func (t *Table) readInterface(tell bool) error {
	t.read.Lock()
	defer t.read.Unlock()
	l, err := t.handle.LinkByIndex(t.index)
	if err != nil {
		return fmt.Errorf("route: read interface %d: %w", t.index, err)
	}
	a := l.Attrs()
	list, err := t.handle.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("route: list addresses of %s: %w", a.Name, err)
	}
	state := &Interface{Index: t.index, Name: a.Name, MTU: a.MTU, Up: a.RawFlags&syscall.IFF_UP != 0,
		Carrier: a.RawFlags&lowerUp != 0, Kind: l.Type(), Ethernet: a.EncapType == "ether" || a.EncapType == "loopback"}
	if a.NetNsID < 0 { // else the interface below is in another namespace
		state.Below = a.ParentIndex
	}
	copy(state.MAC[:], a.HardwareAddr)
	for i := range list {
		bits, _ := list[i].Mask.Size()
		state.Addrs = append(state.Addrs, netip.PrefixFrom(address(list[i].IP), bits))
	}
	t.iface.Store(state)
	if tell {
		t.tell()
	}
	return nil
}
