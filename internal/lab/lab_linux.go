package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Interface is the name of the veth at both ends.
const Interface = "veth0"

// Side names one of the two ends.
type Side int

// The ends of a lab.
const (
	A Side = iota
	B
)

// Peer returns the other end.
func (s Side) Peer() Side { return 1 - s }

func (s Side) String() string { return [...]string{"a", "b"}[s] }

// Addr4 returns the end's IPv4 address, 10.73.0.1 or 10.73.0.2, in a /24.
func (s Side) Addr4() netip.Addr { return netip.AddrFrom4([4]byte{10, 73, 0, s.host()}) }

// Addr6 returns the end's IPv6 address, fd73::1 or fd73::2, in a /64.
func (s Side) Addr6() netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x73, 15: s.host()})
}

// MAC returns the end's Ethernet address, which is the same in every lab.
func (s Side) MAC() net.HardwareAddr { return net.HardwareAddr{2, 0x73, 0, 0, 0, s.host()} }

func (s Side) host() byte { return byte(s) + 1 }

// Options configure a lab. The zero value of a field selects its default.
type Options struct {
	// Queues is the number of receive and of transmit queues of each end; 1 by default.
	Queues int
	// MTU of either end in bytes; 1500 by default.
	MTU int
}

func (o Options) withDefaults() Options {
	if o.Queues == 0 {
		o.Queues = 1
	}
	if o.MTU == 0 {
		o.MTU = 1500
	}
	return o
}

// Lab is two network namespaces and the veth pair between them.
type Lab struct {
	ends [2]*end
}

// end is one namespace and a netlink socket inside it.
type end struct {
	ns netns.NsHandle
	nl *netlink.Handle
	// index is the index of the veth; 0 before it exists.
	index int
}

// New creates two namespaces, which this process holds, and joins them by a veth pair. It needs CAP_SYS_ADMIN and
// CAP_NET_ADMIN.
func New(o Options) (*Lab, error) {
	return open(newNamespace, newNamespace, o)
}

// Join joins the namespaces of two processes that [Start] started. Neither may be in the caller's namespace. The lab
// holds both namespaces until Close, even after the processes have ended.
func Join(pidA, pidB int, o Options) (*Lab, error) {
	return open(namespaceOf(pidA), namespaceOf(pidB), o)
}

func open(a, b func() (netns.NsHandle, error), o Options) (_ *Lab, err error) {
	l := &Lab{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	for s, namespace := range []func() (netns.NsHandle, error){a, b} {
		if l.ends[s], err = openEnd(namespace); err != nil {
			return nil, err
		}
	}
	if err := l.wire(o.withDefaults()); err != nil {
		return nil, err
	}
	return l, nil
}

func openEnd(namespace func() (netns.NsHandle, error)) (*end, error) {
	ns, err := namespace()
	if err != nil {
		return nil, err
	}
	nl, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lab: netlink socket in namespace: %w", err), ns.Close())
	}
	return &end{ns: ns, nl: nl}, nil
}

// Close deletes the veth pair and then releases the namespaces. A second Close does nothing.
func (l *Lab) Close() error {
	var errs []error
	for s, e := range l.ends {
		if e == nil {
			continue
		}
		l.ends[s] = nil
		errs = append(errs, e.close())
	}
	return errors.Join(errs...)
}

// close deletes the veth of this end, and thereby its peer. Otherwise the kernel would delete the interfaces some time
// after the last holder of the namespace is gone. A caller may need them to be deleted when close returns.
func (e *end) close() error {
	errs := []error{e.deleteLink()}
	e.nl.Close()
	return errors.Join(append(errs, e.ns.Close())...)
}
