package route

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
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
func (t *Table) watch() { follow(t.events, t.done, t.apply, t.resync) }

// follow calls apply for each message of the kernel until the socket is closed. It calls lost when messages were lost.
// A host of the link that floods the kernel with changes of neighbours makes it lose messages, so the processor time of
// lost is limited.
//
// System calls: recvfrom (netlink).
func follow(events *nl.NetlinkSocket, done <-chan struct{}, apply func(*syscall.NetlinkMessage), lost func()) {
	var resyncs budget
	for {
		messages, from, err := events.Receive()
		select {
		case <-done:
			return
		default:
		}
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil: // ENOBUFS
			resyncs.charge(costOf(lost), time.Now())
			pause(done, time.Until(resyncs.paid)) // messages that are lost in this time cause the next call
		case from.Pid == nl.PidKernel:
			for i := range messages {
				apply(&messages[i])
			}
		}
	}
}

// apply handles one message. It skips a message that cannot be parsed, which the kernel does not send.
func (t *Table) apply(m *syscall.NetlinkMessage) {
	switch m.Header.Type {
	case syscall.RTM_NEWNEIGH, syscall.RTM_DELNEIGH:
		if n, err := netlink.NeighDeserialize(m.Data); err == nil {
			t.mu.Lock()
			t.sight(n, m.Header.Type == syscall.RTM_DELNEIGH, time.Now())
			t.countFailure(n)
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
	case syscall.RTM_NEWADDR, syscall.RTM_DELADDR, syscall.RTM_NEWROUTE, syscall.RTM_DELROUTE,
		syscall.RTM_NEWRULE, syscall.RTM_DELRULE:
		t.mu.Lock()
		t.routesDue(time.Now())
		t.mu.Unlock()
	}
}

// interfaceChanged reads the interface again. It also makes routes and unresolved neighbours due at once. If the
// interface no longer exists, its last state is kept and marked as down, with the reason gone. A later message may
// still change an unknown reason to "moved".
func (t *Table) interfaceChanged(gone Fate) {
	if err := t.readInterface(true); err != nil {
		t.leave(gone)
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kickUnlisted(now)
	t.routesDue(now)
}

// kickUnlisted makes the next requests for unresolved neighbours due at once. The caller holds mu.
func (t *Table) kickUnlisted(now time.Time) {
	for _, n := range t.neighbours {
		if !n.listed {
			n.pause = 0
			t.requests.set(n, now)
		}
	}
}

// missing checks whether the interface still exists, for the case that messages were lost.
func (t *Table) missing() Fate {
	_, err := t.handle.LinkByIndex(t.index)
	if errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, syscall.ENODEV) {
		return Deleted
	}
	return Present
}

// leave marks the interface as down. If no reason for this is known yet, it records the given one.
func (t *Table) leave(reason Fate) {
	t.read.Lock()
	defer t.read.Unlock()
	last := t.Interface()
	last.Up, last.Carrier = false, false
	if last.Gone == Present {
		last.Gone = reason
	}
	t.iface.Store(&last)
	t.tell()
}

// fate returns why an interface is gone, from the message that removed it.
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

// tell puts a token into Changes.
func (t *Table) tell() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// resync reads everything again. After an error the known state stays until the next message or recheck.
func (t *Table) resync() {
	t.interfaceChanged(t.missing())
	_ = t.readNeighbours()
}

// readInterface reads the interface. With tell it puts a token into Changes.
func (t *Table) readInterface(tell bool) error {
	t.read.Lock()
	defer t.read.Unlock()
	state, err := readInterface(t.handle, t.index)
	if err != nil {
		return err
	}
	t.iface.Store(state)
	if tell {
		t.tell()
	}
	return nil
}

// ReadInterface reads the state of an interface in the network namespace of the calling thread.
//
// System calls: socket, bind, sendto, recvfrom (netlink).
func ReadInterface(index int) (Interface, error) {
	h, err := netlink.NewHandle(syscall.NETLINK_ROUTE)
	if err != nil {
		return Interface{}, fmt.Errorf("route: open netlink socket: %w", err)
	}
	defer h.Close()
	state, err := readInterface(h, index)
	if err != nil {
		return Interface{}, err
	}
	return *state, nil
}

// NameOf returns the name of the interface that has this name or alternative name; empty if there is none.
//
// System calls: socket, bind, sendto, recvfrom (netlink).
func NameOf(name string) string {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return ""
	}
	return l.Attrs().Name
}

func readInterface(h *netlink.Handle, index int) (*Interface, error) {
	l, err := h.LinkByIndex(index)
	if err != nil {
		return nil, fmt.Errorf("route: read interface %d: %w", index, err)
	}
	a := l.Attrs()
	list, err := listAddrs(h, l)
	if err != nil {
		return nil, fmt.Errorf("route: list addresses of %s: %w", a.Name, err)
	}
	state := &Interface{Index: index, Name: a.Name, MTU: a.MTU, Up: a.RawFlags&syscall.IFF_UP != 0,
		Carrier: a.RawFlags&lowerUp != 0, Kind: l.Type(), Ethernet: a.EncapType == "ether" || a.EncapType == "loopback"}
	if a.NetNsID < 0 { // otherwise the underlying interface is in another namespace
		state.Below = a.ParentIndex
	}
	state.Master = a.MasterIndex
	copy(state.MAC[:], a.HardwareAddr)
	slices.SortStableFunc(list, func(a, b netlink.Addr) int { return rankOf(&a) - rankOf(&b) })
	for i := range list {
		state.addAddr(&list[i])
	}
	return state, nil
}

// addAddr adds an address to the list that its state requires.
func (i *Interface) addAddr(a *netlink.Addr) {
	const optimistic, failed, tentative = 0x04, 0x08, 0x40 // IFA_F_* of linux/if_addr.h
	bits, _ := a.Mask.Size()
	p := netip.PrefixFrom(address(a.IP), bits)
	switch {
	case a.Flags&failed != 0:
		i.Duplicate = append(i.Duplicate, p.Addr())
	case a.Flags&(tentative|optimistic) == tentative:
		i.Tentative = append(i.Tentative, p.Addr())
	default:
		i.Addrs = append(i.Addrs, p)
	}
}

// rankOf returns 1 for an IPv6 address that a router advertisement may have made, or that is deprecated (RFC 4862 §5.5), and
// otherwise 0. The kernel lists the newest IPv6 address first, and any host of the link can send router advertisements.
func rankOf(a *netlink.Addr) int {
	if a.IP.To4() == nil && a.Flags&(syscall.IFA_F_PERMANENT|syscall.IFA_F_DEPRECATED) != syscall.IFA_F_PERMANENT {
		return 1
	}
	return 0
}

// listAddrs lists the addresses of an interface. If any address of the host changes meanwhile, the list may be
// incomplete, so listAddrs reads it again. After dumpAttempts it returns the last list: the kernel's message about the
// change makes the Table read the interface again.
//
// System calls: sendto, recvfrom (netlink).
func listAddrs(h *netlink.Handle, l netlink.Link) (list []netlink.Addr, err error) {
	for range dumpAttempts {
		list, err = h.AddrList(l, netlink.FAMILY_ALL)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return list, err
		}
	}
	return list, nil
}
