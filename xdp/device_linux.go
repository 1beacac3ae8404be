package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/datxdp/datxdp/bpf"
	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// Device is an open interface. It has an XDP program, and one Socket for each receive queue. The program redirects the
// packets of one UDP port, and of the device's source ports, to the socket of the queue on which they arrive. Any
// goroutine may call every method. Close must come after the owner of each socket has made its last call.
type Device struct {
	name        string
	ifindex     int
	ns          namespace // network namespace of the interface
	nic         nic
	addedQueues int // receive queues that the driver created when the program was attached
	routes      *route.Table
	guards      guards
	sources     sourcePorts
	steer       *bpf.Steer
	refused     error // why Auto did not get a faster mode
	asked       Mode
	all         bool       // Options.Queues was 0: all queues
	local       netip.Addr // the device's own address
	served      servedAddrs
	mtu         int // the interface's MTU at Open

	watching
	sockets []*Socket
	icmp    *icmpWatch
	memory  memory
}

// Open opens an interface of the calling thread's network namespace, and takes over one of its UDP ports. Errors wrap
// an error of package link, fs.ErrPermission, fs.ErrInvalid (bad options) or bpf.ErrForeign (the interface already has
// an XDP program of another owner).
//
// Open begins with the steps that have no side effects if they fail. The redirect begins last, when the sockets are
// ready.
func Open(ifname string, o Options) (*Device, error) {
	if err := o.validate(); err != nil {
		return nil, &openError{err.Error(), []error{fs.ErrInvalid}}
	}
	return open(ifname, nil, o)
}

// open opens an interface. n reports the queues of the interface; if n is nil, open asks the kernel. In Auto mode, open
// falls back from zero-copy to copy mode if zero-copy is granted and does not work. It does not fall back from copy to
// generic mode, because both transmit in the same way.
func open(ifname string, n nic, o Options) (*Device, error) {
	d, err := openMode(ifname, n, o)
	if fault := (*modeError)(nil); o.Mode == Auto && errors.As(err, &fault) && fault.mode == ZeroCopy {
		o.Mode = Copy
		if d, err = openMode(ifname, n, o); err == nil {
			d.refused = fault
		}
	}
	return d, err
}

// openMode opens an interface in one mode; for Auto, in the fastest mode that the driver grants.
func openMode(ifname string, n nic, o Options) (d *Device, err error) {
	ifi, err := FindInterface(ifname)
	if err != nil {
		return nil, err
	}
	if err := checkPrivilege(ifname); err != nil {
		return nil, err
	}
	d = &Device{name: ifname, ifindex: ifi.Index, nic: n, asked: o.Mode, all: o.Queues == 0}
	d.quit = make(chan struct{})
	d.addressGrace.Store(addressTicks)
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
			d = nil
		}
	}()
	if d.ns, err = currentNamespace(); err != nil {
		return d, err
	}
	if n == nil {
		e, err := openEthtool()
		if err != nil {
			return d, err // d.nic stays nil, because an interface that holds a nil *ethtoolNIC is not nil
		}
		d.nic = e
	}
	h, err := d.identify(&o)
	if err != nil {
		return d, err
	}
	if err = d.takePorts(&h); err != nil {
		return d, err
	}
	return d, d.start(&h, &o)
}

// start attaches the program, opens the sockets and begins to redirect packets to them.
func (d *Device) start(h *host, o *Options) error {
	carried := d.routes.Interface().Carrier
	queues, err := d.attach(h, o)
	if err != nil {
		return err
	}
	if d.memory, err = newMemory(o.Memory); err != nil {
		return fmt.Errorf("xdp: %s: %w", d.name, err)
	}
	h.memory = d.memory
	if err := d.openQueues(queues, h, o); err != nil {
		return err
	}
	d.awaitCarrier(carried, carrierTimeout)
	if err := d.prove(); err != nil {
		return err
	}
	if err := d.register(); err != nil {
		return err
	}
	d.icmp = watchICMP(d.name, h, d.sockets)
	d.guards.start(d.sockets[0], h.mtu)
	return nil
}

// awaitCarrier waits until the interface has its carrier again, because some drivers reset their link when a program is
// attached, and again when zero-copy is enabled. It does nothing if the interface had no carrier before the program was
// attached.
func (d *Device) awaitCarrier(had bool, timeout time.Duration) {
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	for had && !d.routes.Refresh().Carrier {
		select {
		case <-d.routes.Changes():
		case <-limit.C:
			return
		}
	}
}

// attach attaches the program to the interface and returns the number of queues to open. It counts the queues after the
// attach, because some drivers create extra queues for a program and spread packets to them.
func (d *Device) attach(h *host, o *Options) (queues int, err error) {
	before, err := d.nic.channels(d.name)
	if err != nil {
		return 0, err
	}
	if _, err = before.toOpen(d.name, o.Queues); err != nil {
		return 0, err
	}
	d.steer, err = bpf.Attach(bpf.Options{
		Ifindex: d.ifindex, Interface: d.name, Port: o.Port, Sources: h.sources, MAC: h.mac, Addresses: h.served.now.Load().addrs,
		Queues: before.most(), Mode: attachMode(o.Mode),
	})
	if err != nil {
		return 0, explainAttach(d.name, h.mtu, err)
	}
	now, err := d.nic.channels(d.name)
	if err != nil {
		return 0, err
	}
	d.addedQueues = max(0, now.receive()-before.receive())
	return now.toOpen(d.name, o.Queues)
}

// attachMode converts a mode of the device to the mode in which the XDP program must be attached.
func attachMode(m Mode) bpf.Mode {
	switch m {
	case Auto:
		return bpf.Auto
	case Generic:
		return bpf.Generic
	case ZeroCopy, Copy: // need native XDP
	}
	return bpf.Native
}

// openQueues opens a socket on each queue. It does not use zero-copy if the driver created queues for the program. The
// driver removes these queues together with the program. The virtio driver of Linux 7.3 may remove a queue while its
// rings still refer to the socket's memory; the next use of the queue then corrupts kernel memory.
func (d *Device) openQueues(queues int, h *host, o *Options) error {
	where := place{ifindex: d.ifindex, name: d.name, mode: o.Mode, ring: d.nic.ring(d.name)}
	switch {
	case d.steer.Mode() == bpf.Generic:
		where.mode = Generic
	case d.addedQueues > 0 && o.Mode == ZeroCopy:
		return d.refuseAdded("zero-copy on queues that it removes again can crash the kernel")
	case d.addedQueues > 0 && o.Mode == Auto:
		where.mode = Copy
	}
	if err := checkMemory(d.name, queues, o.frameMemory(where.mode, where.ring)); err != nil {
		return err
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

// register enables the redirect to each socket. Packets may arrive from now on.
func (d *Device) register() error {
	for q, s := range d.sockets {
		if err := d.steer.Register(q, s.fd); err != nil {
			return fmt.Errorf("xdp: %w", err)
		}
	}
	return nil
}

// Name is the name of the interface.
func (d *Device) Name() string {
	if now := d.renamed.Load(); now != nil {
		return *now
	}
	return d.name
}

func (d *Device) rename(name string) { d.renamed.Store(&name) }

// refusePaths makes the sockets refuse new paths; why is the error that they return.
func (d *Device) refusePaths(why error) {
	for _, s := range d.sockets {
		s.ended.Store(&why)
	}
}

// Links returns the sockets, one per receive queue, in the order of the queues. Their concrete type is *Socket.
func (d *Device) Links() []link.Link {
	links := make([]link.Link, len(d.sockets))
	for q, s := range d.sockets {
		links[q] = s
	}
	return links
}

// Sockets returns the sockets, in the order of the queues.
func (d *Device) Sockets() []*Socket { return append([]*Socket(nil), d.sockets...) }

// Mode returns the mode that was granted. If the queues differ, it returns the slowest.
func (d *Device) Mode() Mode {
	mode := ZeroCopy
	for _, s := range d.sockets {
		if m := Mode(s.Caps().Mode); m != ZeroCopy {
			mode = m
		}
	}
	return mode
}

// Refused returns why Auto did not get a faster mode; nil if no mode was refused with a reason.
func (d *Device) Refused() error {
	if d.refused != nil {
		return d.refused
	}
	return d.steer.NativeRefusal()
}

// Counters returns what the program on the interface did with the packets it saw.
func (d *Device) Counters() (Counters, error) {
	c, err := d.steer.Counters()
	return Counters(c), err
}

// Stats sums the statistics of the sockets.
func (d *Device) Stats() link.Stats {
	var sum link.Stats
	for _, s := range d.sockets {
		sum.Add(s.Stats())
	}
	return sum
}

// Close disables the redirect, closes the sockets, detaches the program and releases the port, in this order. Then it
// frees the memory of Options.Memory. If a method of the device's Keeper is running, Close waits until the method
// returns. A second Close does nothing.
func (d *Device) Close() error {
	err := errors.Join(d.Stop(), d.memory.recycle())
	d.memory = nil
	return err
}

// Stop does what Close does, except that the memory of Options.Memory stays as it is. So consumers may use the memory
// until Close, while the interface is opened again. A second Stop does nothing.
func (d *Device) Stop() error {
	d.closing.Do(func() { close(d.quit) })
	d.watcher.Wait()
	var errs []error
	if d.steer != nil {
		for q := range d.sockets {
			if err := d.steer.Unregister(q); !errors.Is(err, bpf.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	d.icmp.close()
	for _, s := range d.sockets {
		errs = append(errs, s.Close())
	}
	if d.steer != nil {
		errs = append(errs, d.steer.Close())
	}
	if d.routes != nil {
		errs = append(errs, d.routes.Close())
	}
	if err := d.ns.close(); !errors.Is(err, fs.ErrClosed) {
		errs = append(errs, err)
	}
	if d.nic != nil {
		errs = append(errs, d.nic.Close())
	}
	errs = append(errs, d.guards.close(), d.sources.close())
	return errors.Join(errs...)
}

var _ hop = (*route.Hop)(nil)

// routes adapts a route.Table to the router interface.
type routes struct{ table *route.Table }

func (r routes) Resolve(from, to netip.AddrPort) (hop, error) {
	h, err := r.table.Resolve(from, to, resolveWait)
	if errors.Is(err, route.ErrNoAnswer) {
		return r.Known(from, to)
	}
	return hopOf(to.Addr(), h, err)
}

func (r routes) Known(from, to netip.AddrPort) (hop, error) {
	h, err := r.table.Known(from, to)
	return hopOf(to.Addr(), h, err)
}

// hopOf converts the result of a route.Table.
func hopOf(to netip.Addr, h *route.Hop, err error) (hop, error) {
	switch {
	case err == nil:
		return h, nil
	case errors.Is(err, route.ErrUnreachable):
		err = unreachable(err)
	}
	return nil, fmt.Errorf("xdp: %v: %w", to, err)
}

// unreachable returns link.ErrUnreachable with the kernel's error number in err, if there is one: a rule or a route may
// prohibit the address.
func unreachable(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return fmt.Errorf("%w (%w)", link.ErrUnreachable, number)
	}
	return link.ErrUnreachable
}

func (r routes) Answer(own, peer netip.AddrPort, from [6]byte) ([6]byte, bool) {
	return r.table.Answer(own, peer, from)
}

func (r routes) InZone(zone string) bool {
	i := r.table.Interface()
	return zone == i.Name || zone == strconv.Itoa(i.Index)
}

func (r routes) Local(from, to netip.AddrPort) bool { return r.table.Local(from, to) }

func (r routes) Release(h hop) { r.table.Release(h.(*route.Hop)) }
