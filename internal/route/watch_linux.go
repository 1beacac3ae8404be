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
		if nl.DeserializeIfInfomsg(m.Data).Index == int32(t.index) {
			t.interfaceChanged()
		}
	case syscall.RTM_NEWADDR, syscall.RTM_DELADDR:
		t.interfaceChanged()
	case syscall.RTM_NEWROUTE, syscall.RTM_DELROUTE:
		t.mu.Lock()
		t.routesDue(time.Now())
		t.mu.Unlock()
	}
}

// interfaceChanged reads the interface again and has routes and unresolved neighbours done at once.
// An interface that is gone keeps its last state, down.
func (t *Table) interfaceChanged() {
	if err := t.readInterface(); err != nil {
		down := t.Interface()
		down.Up = false
		t.iface.Store(&down)
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

// resync reads everything again. An error leaves what is known; the next message or recheck mends.
func (t *Table) resync() {
	t.interfaceChanged()
	_ = t.readNeighbours()
}

func (t *Table) readInterface() error {
	l, err := t.handle.LinkByIndex(t.index)
	if err != nil {
		return fmt.Errorf("route: read interface %d: %w", t.index, err)
	}
	a := l.Attrs()
	list, err := t.handle.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("route: list addresses of %s: %w", a.Name, err)
	}
	state := &Interface{Index: t.index, Name: a.Name, MTU: a.MTU, Up: a.RawFlags&syscall.IFF_UP != 0}
	copy(state.MAC[:], a.HardwareAddr)
	for i := range list {
		bits, _ := list[i].Mask.Size()
		state.Addrs = append(state.Addrs, netip.PrefixFrom(address(list[i].IP), bits))
	}
	t.iface.Store(state)
	return nil
}
