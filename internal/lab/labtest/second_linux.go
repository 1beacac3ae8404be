package labtest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
)

// Second is the name of the interfaces of AddSecond.
const Second = "second0"

// AddSecond joins the sides of a lab by a second veth pair without addresses, as two NICs of a host in one network have it.
func AddSecond(l *lab.Lab) error {
	var far *os.File
	err := l.Do(lab.B, func() (err error) {
		far, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return err
	}
	defer far.Close()
	err = l.Do(lab.A, func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = Second
		pair := netlink.NewVeth(attrs)
		pair.PeerName, pair.PeerNamespace = Second, netlink.NsFd(far.Fd())
		return netlink.LinkAdd(pair)
	})
	if err != nil {
		return fmt.Errorf("labtest: add %s: %w", Second, err)
	}
	up := func() error {
		return onLink(Second, func(l netlink.Link) error {
			return errors.Join(netlink.LinkSetIP6AddrGenMode(l, addrGenNone), netlink.LinkSetUp(l))
		})
	}
	if err := errors.Join(l.Do(lab.A, up), l.Do(lab.B, up)); err != nil {
		return err
	}
	return errors.Join(l.Do(lab.A, awaitSecond), l.Do(lab.B, awaitSecond))
}

// awaitSecond waits until the kernel sends through the interface. It drops packets until it has handled the carrier, which
// takes up to a second.
func awaitSecond() error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		l, err := netlink.LinkByName(Second)
		if err != nil || l.Attrs().OperState == netlink.OperUp {
			return err
		}
	}
	return fmt.Errorf("labtest: %s has no carrier", Second)
}

// AddRoute adds a route to one host through an interface, from a source address if that is valid.
func AddRoute(name string, to, from netip.Addr) error {
	return onLink(name, func(l netlink.Link) error {
		r := &netlink.Route{LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK, Src: from.AsSlice(),
			Dst: &net.IPNet{IP: to.AsSlice(), Mask: net.CIDRMask(to.BitLen(), to.BitLen())}}
		return netlink.RouteAdd(r)
	})
}

// Sent returns the bytes that an interface has sent.
func Sent(name string) (bytes uint64, err error) {
	err = onLink(name, func(l netlink.Link) error {
		bytes = l.Attrs().Statistics.TxBytes
		return nil
	})
	return bytes, err
}
