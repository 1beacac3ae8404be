package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/bpf"
	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// Device is an interface whose UDP port is steered to a Socket on each receive queue. Every method
// may be called by any goroutine; Close comes last, when each socket's owner has let go of it.
type Device struct {
	name    string
	routes  *route.Table
	guard   *net.UDPConn // keeps the port from other programs
	steer   *bpf.Steer
	sockets []*Socket
	memory  memory
}

// Open takes a UDP port of an interface, in the network namespace of the calling thread. Its errors
// wrap those of package link, fs.ErrPermission, fs.ErrInvalid for options and, for an XDP program of
// somebody else's, bpf.ErrForeign.
//
// The order of the steps: what can be refused without a trace comes first, and packets are steered
// last, to sockets that are ready.
func Open(ifname string, o Options) (d *Device, err error) {
	if err := o.validate(); err != nil {
		return nil, &openError{err.Error(), []error{fs.ErrInvalid}}
	}
	ifi, err := findInterface(ifname)
	if err != nil {
		return nil, err
	}
	queues, err := queueCount(ifname, o.Queues)
	if err != nil {
		return nil, err
	}
	d = &Device{name: ifname}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
			d = nil
		}
	}()
	h, err := d.identify(ifi, &o)
	if err != nil {
		return d, err
	}
	if err = d.takePort(h.local); err != nil {
		return d, err
	}
	if err = d.attach(ifi.Index, queues, &h, &o); err != nil {
		return d, err
	}
	if d.memory, err = newMemory(o.Memory); err != nil {
		return d, fmt.Errorf("xdp: %s: %w", d.name, err)
	}
	h.memory = d.memory
	if err = d.openQueues(ifi.Index, queues, &h, &o); err != nil {
		return d, err
	}
	return d, d.register()
}

// identify opens the routes and learns who we are.
func (d *Device) identify(ifi *net.Interface, o *Options) (h host, err error) {
	if d.routes, err = route.Open(ifi.Index); err != nil {
		return h, fmt.Errorf("xdp: %s: routes: %w", d.name, err)
	}
	now := d.routes.Interface()
	h = host{mac: now.MAC, mtu: min(now.MTU, maxPacket), router: routes{d.routes}}
	local, err := chooseAddr(d.name, now.Addrs, o.Addr)
	if err != nil {
		return h, err
	}
	h.local = netip.AddrPortFrom(local, o.Port)
	h.addrs = steered(local, now.Addrs)
	return h, nil
}

// chooseAddr picks the address to be known by.
func chooseAddr(name string, have []netip.Prefix, want netip.Addr) (netip.Addr, error) {
	var best netip.Addr
	for _, p := range have {
		a := p.Addr()
		switch {
		case want.IsValid():
			if a == want.Unmap() {
				return a, nil
			}
		case a.Is4():
			return a, nil
		case !best.IsValid() && !a.IsLinkLocalUnicast():
			best = a
		}
	}
	if want.IsValid() {
		return best, fmt.Errorf("xdp: %s does not have the address %v: choose one of %v: %w", name, want, have, link.ErrUnsupported)
	}
	if !best.IsValid() {
		return best, fmt.Errorf("xdp: %s has no address: give it one (ip address add ... dev %s): %w", name, name, link.ErrUnsupported)
	}
	return best, nil
}

// steered lists the addresses whose packets are ours, local first, as many as the program can
// compare with.
func steered(local netip.Addr, have []netip.Prefix) []netip.Addr {
	all := []netip.Addr{local}
	var n4, n6 int
	if local.Is4() {
		n4++
	} else {
		n6++
	}
	for _, p := range have {
		n := &n6
		if p.Addr().Is4() {
			n = &n4
		}
		if p.Addr() != local && *n < bpf.MaxAddresses {
			all = append(all, p.Addr())
			*n++
		}
	}
	return all
}

// takePort binds the port in the kernel for as long as the device is open: no other program is
// given it, and packets that are not steered meet a port that is there.
func (d *Device) takePort(local netip.AddrPort) (err error) {
	d.guard, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	if errors.Is(err, unix.EADDRINUSE) {
		return &openError{
			text: fmt.Sprintf("xdp: %s: another program has UDP port %d of %v: stop it or choose another port (--port)", d.name, local.Port(), local.Addr()),
			is:   []error{link.ErrBusy, err},
		}
	}
	if err != nil {
		return fmt.Errorf("xdp: %s: %w", d.name, err)
	}
	_ = d.guard.SetReadBuffer(0) // nobody reads it: the least the kernel allows
	return nil
}

// attach puts the program on the interface.
func (d *Device) attach(ifindex, queues int, h *host, o *Options) (err error) {
	mode := bpf.Native
	switch o.Mode {
	case Auto:
		mode = bpf.Auto
	case Generic:
		mode = bpf.Generic
	case ZeroCopy, Copy: // need the driver
	}
	d.steer, err = bpf.Attach(bpf.Options{
		Ifindex: ifindex, Interface: d.name, Port: o.Port, Addresses: h.addrs, Queues: queues, Mode: mode,
	})
	if err != nil {
		return explainAttach(d.name, err)
	}
	return nil
}

// openQueues opens a socket on each queue.
func (d *Device) openQueues(ifindex, queues int, h *host, o *Options) error {
	where := place{ifindex: ifindex, name: d.name, mode: o.Mode, ring: receiveRing(d.name)}
	if d.steer.Mode() == bpf.Generic {
		where.mode = Generic
	}
	for where.queue = range queues {
		s, err := openQueue(where, *h, o)
		if err != nil {
			return err
		}
		d.sockets = append(d.sockets, s)
	}
	return nil
}

// register lets packets come.
func (d *Device) register() error {
	for q, s := range d.sockets {
		if err := d.steer.Register(q, s.fd); err != nil {
			return fmt.Errorf("xdp: %w", err)
		}
	}
	return nil
}

// Name is the name of the interface.
func (d *Device) Name() string { return d.name }

// Links returns the sockets, one per receive queue in the order of the queues. The concrete type is
// *Socket.
func (d *Device) Links() []link.Link {
	links := make([]link.Link, len(d.sockets))
	for q, s := range d.sockets {
		links[q] = s
	}
	return links
}

// Sockets returns the sockets, one per receive queue in the order of the queues.
func (d *Device) Sockets() []*Socket { return append([]*Socket(nil), d.sockets...) }

// Mode is how packets move, as granted: the least of any queue.
func (d *Device) Mode() Mode {
	mode := ZeroCopy
	for _, s := range d.sockets {
		if m := Mode(s.caps.Mode); m != ZeroCopy {
			mode = m
		}
	}
	return mode
}

// Counters says what the program on the interface did with the packets it saw.
func (d *Device) Counters() (bpf.Counters, error) { return d.steer.Counters() }

// Stats sums the statistics of the sockets.
func (d *Device) Stats() link.Stats {
	var sum link.Stats
	for _, s := range d.sockets {
		sum.Add(s.Stats())
	}
	return sum
}

// Close lets packets pass to the kernel again, then closes the sockets, then detaches the program,
// then gives the port back. Closing again does nothing.
func (d *Device) Close() error {
	var errs []error
	if d.steer != nil {
		for q := range d.sockets {
			if err := d.steer.Unregister(q); !errors.Is(err, bpf.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	for _, s := range d.sockets {
		errs = append(errs, s.Close())
	}
	errs = append(errs, d.memory.release())
	d.memory = nil
	if d.steer != nil {
		errs = append(errs, d.steer.Close())
	}
	if d.routes != nil {
		errs = append(errs, d.routes.Close())
	}
	if d.guard != nil {
		if err := d.guard.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

var _ hop = (*route.Hop)(nil)

// routes is a route.Table as a router.
type routes struct{ table *route.Table }

func (r routes) Resolve(to netip.Addr) (hop, error) {
	h, err := r.table.Resolve(to)
	if errors.Is(err, route.ErrUnreachable) {
		return nil, fmt.Errorf("xdp: %v: %w", to, link.ErrUnreachable)
	}
	if err != nil {
		return nil, fmt.Errorf("xdp: %v: %w", to, err)
	}
	return h, nil
}

func (r routes) Release(h hop) { r.table.Release(h.(*route.Hop)) }
