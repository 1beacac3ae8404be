package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// wire creates the pair with one end in each namespace and brings both up.
func (l *Lab) wire(o Options) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = Interface
	attrs.MTU = o.MTU
	attrs.HardwareAddr = A.MAC()
	attrs.NumTxQueues, attrs.NumRxQueues = o.Queues, o.Queues

	veth := netlink.NewVeth(attrs)
	veth.PeerName = Interface
	veth.PeerHardwareAddr = B.MAC()
	veth.PeerNamespace = netlink.NsFd(l.ends[B].ns)
	veth.PeerNumTxQueues, veth.PeerNumRxQueues = uint32(o.Queues), uint32(o.Queues)
	veth.PeerMTU = uint32(o.MTU)
	if err := l.ends[A].nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("lab: create veth pair (%d queues, MTU %d): %w", o.Queues, o.MTU, err)
	}
	if err := l.each(func(s Side, e *end) error { return e.configure(s) }); err != nil {
		return err
	}
	return l.awaitCarrier()
}

// Rewire deletes the veth pair and creates it again, as when the driver of a NIC is reloaded.
func (l *Lab) Rewire(o Options) error {
	if err := l.each(func(_ Side, e *end) error { return e.deleteLink() }); err != nil {
		return err
	}
	return l.wire(o.withDefaults())
}

func (e *end) configure(s Side) error {
	if err := e.up("lo"); err != nil {
		return err
	}
	link, err := e.link(Interface)
	if err != nil {
		return err
	}
	e.index = link.Attrs().Index
	// Without a link-local address the kernel sends no router solicitation and does no duplicate address detection, so
	// a new lab is silent.
	if err := e.nl.LinkSetIP6AddrGenMode(link, nl6AddrGenNone); err != nil {
		return fmt.Errorf("lab: turn off link-local address of %s: %w", Interface, err)
	}
	for _, p := range []netip.Prefix{netip.PrefixFrom(s.Addr4(), 24), netip.PrefixFrom(s.Addr6(), 64)} {
		if err := e.nl.AddrAdd(link, address(p)); err != nil {
			return fmt.Errorf("lab: add %s to %s: %w", p, Interface, err)
		}
	}
	return e.up(Interface)
}

// nl6AddrGenNone is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h.
const nl6AddrGenNone = 1

func address(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: &net.IPNet{
		IP:   p.Addr().AsSlice(),
		Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
	}}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// SetMTU sets the MTU of both ends.
func (l *Lab) SetMTU(mtu int) error {
	return l.each(func(s Side, e *end) error {
		link, err := e.link(Interface)
		if err != nil {
			return err
		}
		if err := e.nl.LinkSetMTU(link, mtu); err != nil {
			return fmt.Errorf("lab: set MTU %d on side %s: %w", mtu, s, err)
		}
		return nil
	})
}

// SetUp takes one end up or down. While one end is down, the other has no carrier. After up, SetUp returns when both
// ends have a carrier.
func (l *Lab) SetUp(s Side, up bool) error {
	if up {
		if err := l.ends[s].up(Interface); err != nil {
			return err
		}
		return l.awaitCarrier()
	}
	link, err := l.ends[s].link(Interface)
	if err != nil {
		return err
	}
	if err := l.ends[s].nl.LinkSetDown(link); err != nil {
		return fmt.Errorf("lab: take %s down on side %s: %w", Interface, s, err)
	}
	return nil
}

// awaitCarrier waits until both ends can send. It does not wait if one of them is down. An end drops packets until the
// kernel has noticed, in the background, that its peer is up. Since Linux 6.8 reading the state makes the kernel
// notice; older kernels need time.
func (l *Lab) awaitCarrier() error {
	for deadline := time.Now().Add(carrierTimeout); ; time.Sleep(time.Millisecond) {
		ready, err := l.ready()
		if err != nil || ready {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("lab: %s has no carrier after %s", Interface, carrierTimeout)
		}
	}
}

// ready reports whether the wait is over: both ends can send, or one of them is down.
func (l *Lab) ready() (bool, error) {
	sending, down := 0, false
	err := l.each(func(_ Side, e *end) error {
		link, err := e.link(Interface)
		if err != nil {
			return err
		}
		down = down || link.Attrs().Flags&net.FlagUp == 0
		if link.Attrs().OperState == netlink.OperUp {
			sending++
		}
		return nil
	})
	return down || sending == len(l.ends), err
}

// carrierTimeout is well above the second by which old kernels delay link events.
const carrierTimeout = 10 * time.Second

func (l *Lab) each(fn func(Side, *end) error) error {
	for s, e := range l.ends {
		if err := fn(Side(s), e); err != nil {
			return err
		}
	}
	return nil
}

func (e *end) up(name string) error {
	link, err := e.link(name)
	if err != nil {
		return err
	}
	if err := e.nl.LinkSetUp(link); err != nil {
		return fmt.Errorf("lab: bring %s up: %w", name, err)
	}
	return nil
}

func (e *end) link(name string) (netlink.Link, error) {
	link, err := e.nl.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("lab: find interface %s: %w", name, err)
	}
	return link, nil
}

// deleteLink deletes the pair if this lab created it. A missing pair is no error.
func (e *end) deleteLink() error {
	if e.index == 0 {
		return nil
	}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: e.index}}
	if err := e.nl.LinkDel(veth); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("lab: delete %s: %w", Interface, err)
	}
	return nil
}
