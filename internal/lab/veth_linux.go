package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

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
	return l.each(func(s Side, e *end) error { return e.configure(s) })
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
	// Without a link-local address there is no router solicitation and no address detection, so a
	// fresh lab is silent until somebody sends.
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

// SetUp takes one end up or down. The other end loses its carrier with it.
func (l *Lab) SetUp(s Side, up bool) error {
	if up {
		return l.ends[s].up(Interface)
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

// deleteLink deletes the pair, if it is this lab that made it; that it is gone already is no error.
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
