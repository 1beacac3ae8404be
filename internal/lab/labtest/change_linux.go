package labtest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
)

// onLink calls f with an interface of the thread's namespace.
func onLink(name string, f func(netlink.Link) error) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("labtest: find %s: %w", name, err)
	}
	return f(l)
}

// Delete deletes an interface.
func Delete(name string) error { return onLink(name, netlink.LinkDel) }

// AddTunnel creates an interface whose packets have no Ethernet header.
func AddTunnel(name string, p netip.Prefix) error { return addTuntap(name, p, netlink.TUNTAP_MODE_TUN) }

// AddTap creates a tap interface that no program has opened: it has no queue and no carrier.
func AddTap(name string, p netip.Prefix) error { return addTuntap(name, p, netlink.TUNTAP_MODE_TAP) }

func addTuntap(name string, p netip.Prefix, mode netlink.TuntapMode) error {
	l := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: mode}
	if err := netlink.LinkAdd(l); err != nil {
		return fmt.Errorf("labtest: add %s: %w", name, err)
	}
	return errors.Join(AddAddress(name, p), netlink.LinkSetUp(l))
}

// AddReluctant creates an interface whose driver refuses XDP programs: a veth that has fewer receive queues than its
// peer has transmit queues.
func AddReluctant(name, peer string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumRxQueues, attrs.NumTxQueues = name, 1, 1
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerNumTxQueues, v.PeerNumRxQueues = peer, 2, 2
	if err := netlink.LinkAdd(v); err != nil {
		return fmt.Errorf("labtest: add %s: %w", name, err)
	}
	return errors.Join(onLink(peer, netlink.LinkSetUp), onLink(name, netlink.LinkSetUp))
}

// AddOver creates an interface of a kind, "macvlan", "macvtap" or "bridge", on top of another one and gives it an address.
func AddOver(kind, name, below string, p netip.Prefix) error {
	return onLink(below, func(l netlink.Link) (err error) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		switch kind {
		case "macvlan":
			attrs.ParentIndex = l.Attrs().Index
			err = netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE})
		case "macvtap":
			attrs.ParentIndex = l.Attrs().Index
			err = netlink.LinkAdd(&netlink.Macvtap{Macvlan: netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}})
		case "bridge":
			bridge := &netlink.Bridge{LinkAttrs: attrs}
			err = errors.Join(netlink.LinkAdd(bridge), netlink.LinkSetMaster(l, bridge))
		default:
			err = fmt.Errorf("no kind is called %s", kind)
		}
		if err != nil {
			return fmt.Errorf("labtest: add %s: %w", name, err)
		}
		return errors.Join(AddAddress(name, p), onLink(name, netlink.LinkSetUp))
	})
}

// Rename renames an interface.
func Rename(name, to string) error {
	return onLink(name, func(l netlink.Link) error { return netlink.LinkSetName(l, to) })
}

// SetMAC changes an interface's Ethernet address.
func SetMAC(name string, mac net.HardwareAddr) error {
	return onLink(name, func(l netlink.Link) error { return netlink.LinkSetHardwareAddr(l, mac) })
}

// AddAddress adds an address to an interface.
func AddAddress(name string, p netip.Prefix) error {
	return onLink(name, func(l netlink.Link) error { return netlink.AddrAdd(l, netlinkAddr(p)) })
}

// AddDetected adds an IPv6 address to an interface, with duplicate address detection. The address is tentative for 1 to 2 s.
func AddDetected(name string, p netip.Prefix) error {
	return onLink(name, func(l netlink.Link) error {
		a := netlinkAddr(p)
		a.Flags = 0
		return netlink.AddrAdd(l, a)
	})
}

// RemoveAddress removes an address from an interface.
func RemoveAddress(name string, p netip.Prefix) error {
	return onLink(name, func(l netlink.Link) error { return netlink.AddrDel(l, netlinkAddr(p)) })
}

func netlinkAddr(p netip.Prefix) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}, Flags: unix.IFA_F_NODAD}
}

// Move moves an interface into a namespace of a lab.
func Move(name string, to *lab.Lab, side lab.Side) error {
	return onLink(name, func(l netlink.Link) (err error) {
		var ns *os.File
		err = to.Do(side, func() (err error) {
			ns, err = os.Open("/proc/thread-self/ns/net")
			return err
		})
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetNsFd(l, int(ns.Fd())), ns.Close())
	})
}

// DetachProgram detaches the XDP program of an interface from its bpf_link, as any privileged user can do with bpftool.
func DetachProgram(name string) error {
	id, err := ProgramOn(name)
	if err != nil {
		return err
	}
	var all link.Iterator
	defer all.Close()
	for all.Next() {
		info, err := all.Link.Info()
		if err == nil && info.Type == link.XDPType && info.Program == ebpf.ProgramID(id) {
			return all.Link.Detach()
		}
	}
	return errors.Join(fmt.Errorf("labtest: no bpf_link of program %d on %s", id, name), all.Err())
}

// SetUp takes an interface up.
func SetUp(name string) error { return onLink(name, netlink.LinkSetUp) }

// AddPair creates a veth pair without addresses, one queue each way, and takes it up.
func AddPair(name, peer string, mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.NumRxQueues, attrs.NumTxQueues = name, mtu, 1, 1
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerMTU, v.PeerNumRxQueues, v.PeerNumTxQueues = peer, uint32(mtu), 1, 1
	if err := netlink.LinkAdd(v); err != nil {
		return fmt.Errorf("labtest: add %s: %w", name, err)
	}
	const noAddress = 1 // IN6_ADDR_GEN_MODE_NONE of linux/if_link.h
	for _, end := range []string{name, peer} {
		if err := onLink(end, func(l netlink.Link) error {
			return errors.Join(netlink.LinkSetIP6AddrGenMode(l, noAddress), netlink.LinkSetUp(l))
		}); err != nil {
			return fmt.Errorf("labtest: %s: %w", end, err)
		}
	}
	return nil
}
