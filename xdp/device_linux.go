package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/bpf"
	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// Device is an interface whose UDP port is steered to a Socket on each receive queue. Every method
// may be called by any goroutine; Close comes last, when each socket's owner has let go of it.
type Device struct {
	name    string
	ifindex int
	ns      namespace // where the interface is
	nic     nic
	added   int // receive queues that the driver made when the program was attached
	routes  *route.Table
	guard   *net.UDPConn // keeps the port from other programs
	steer   *bpf.Steer
	refused error // why a better mode was not taken
	asked   Mode
	all     bool       // every queue was asked for
	local   netip.Addr // the device is known by
	mtu     int        // when it was opened

	renamed  atomic.Pointer[string] // what the interface is called now, nil as long as it is name
	watcher  sync.WaitGroup
	closing  sync.Once
	quit     chan struct{} // ends watcher
	patience atomic.Int32  // ticks that the address may be missing
	sockets  []*Socket
	icmp     *icmpWatch
	memory   memory
}

// Open takes a UDP port of an interface, in the network namespace of the calling thread. Its errors
// wrap those of package link, fs.ErrPermission, fs.ErrInvalid for options and, for an XDP program of
// somebody else's, bpf.ErrForeign.
//
// The order of the steps: what can be refused without a trace comes first, and packets are steered
// last, to sockets that are ready.
func Open(ifname string, o Options) (*Device, error) {
	if err := o.validate(); err != nil {
		return nil, &openError{err.Error(), []error{fs.ErrInvalid}}
	}
	return open(ifname, nil, o)
}

// open opens an interface. n knows its queues; nil for what the kernel says. Queues that turn out not to transmit in zero-copy mode are opened in
// copy mode where the caller leaves the choice; generic mode transmits as copy mode does.
func open(ifname string, n nic, o Options) (*Device, error) {
	d, err := openMode(ifname, n, o)
	if dead := (*silentError)(nil); o.Mode == Auto && errors.As(err, &dead) && dead.mode == ZeroCopy {
		o.Mode = Copy
		if d, err = openMode(ifname, n, o); err == nil {
			d.refused = dead
		}
	}
	return d, err
}

// openMode opens an interface in one mode, or the best that is granted for Auto.
func openMode(ifname string, n nic, o Options) (d *Device, err error) {
	ifi, err := findInterface(ifname)
	if err != nil {
		return nil, err
	}
	d = &Device{name: ifname, ifindex: ifi.Index, nic: n, asked: o.Mode, all: o.Queues == 0,
		quit: make(chan struct{})}
	d.patience.Store(addressTicks)
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
		if d.nic, err = openEthtool(); err != nil {
			return d, err
		}
	}
	h, err := d.identify(&o)
	if err != nil {
		return d, err
	}
	if err = d.takePort(h.local); err != nil {
		return d, err
	}
	carried := d.routes.Interface().Carrier
	queues, err := d.attach(&h, &o)
	if err != nil {
		return d, err
	}
	if d.memory, err = newMemory(o.Memory); err != nil {
		return d, fmt.Errorf("xdp: %s: %w", d.name, err)
	}
	h.memory = d.memory
	if err = d.openQueues(queues, &h, &o); err != nil {
		return d, err
	}
	d.awaitCarrier(carried, carrierPatience)
	if err = d.prove(); err != nil {
		return d, err
	}
	if err = d.register(); err != nil {
		return d, err
	}
	d.icmp = watchICMP(d.name, &h, d.sockets)
	return d, nil
}

// awaitCarrier waits for the carrier of an interface that had one before: drivers exist that reset their link when a
// program is attached, and again for zero-copy.
func (d *Device) awaitCarrier(had bool, patience time.Duration) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for had && !d.routes.Refresh().Carrier {
		select {
		case <-d.routes.Changes():
		case <-limit.C:
			return
		}
	}
}

// identify opens the routes and learns who we are.
func (d *Device) identify(o *Options) (h host, err error) {
	if d.routes, err = route.Open(d.ifindex); err != nil {
		return h, fmt.Errorf("xdp: %s: routes: %w", d.name, err)
	}
	now := d.routes.Interface()
	h = host{mac: now.MAC, mtu: min(now.MTU, maxPacket), router: routes{d.routes}}
	local, err := chooseAddr(d.name, now.Addrs, o.Addr)
	if err != nil {
		return h, err
	}
	if err := refuseLayer(&now, local); err != nil {
		return h, err
	}
	h.local = netip.AddrPortFrom(local, o.Port)
	h.addrs, h.groups = steered(local, now.Addrs), broadcasts(now.Addrs)
	d.local, d.mtu = local, h.mtu
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
			text: fmt.Sprintf("xdp: %s: another program has UDP port %d of %v: stop it or choose another with the option port=", d.name, local.Port(), local.Addr()),
			is:   []error{link.ErrBusy, err},
		}
	}
	if err != nil {
		return fmt.Errorf("xdp: %s: %w", d.name, err)
	}
	_ = d.guard.SetReadBuffer(0) // nobody reads it: the least the kernel allows
	return d.distrustICMP(local.Addr())
}

// distrustICMP has the kernel ignore what ICMP tells of the path MTU of packets from the port: nothing leaves from its
// socket, so that such a message is forged, and the routes to our peers would have the MTU that it names for ten minutes.
//
// System calls: setsockopt.
func (d *Device) distrustICMP(local netip.Addr) error {
	level, option, value := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_INTERFACE
	if local.Is6() {
		level, option, value = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_INTERFACE
	}
	raw, err := d.guard.SyscallConn()
	if err == nil {
		var refused error
		err = raw.Control(func(fd uintptr) { refused = unix.SetsockoptInt(int(fd), level, option, value) })
		err = errors.Join(err, refused)
	}
	if err != nil {
		return fmt.Errorf("xdp: %s: have ICMP ignored on the port: %w", d.name, err)
	}
	return nil
}

// attach puts the program on the interface and returns the number of queues to open. Drivers exist that make more
// queues for a program, and spread packets to them: they are counted when it is there.
func (d *Device) attach(h *host, o *Options) (queues int, err error) {
	before, err := d.nic.channels(d.name)
	if err != nil {
		return 0, err
	}
	if _, err = before.toOpen(d.name, o.Queues); err != nil {
		return 0, err
	}
	d.steer, err = bpf.Attach(bpf.Options{
		Ifindex: d.ifindex, Interface: d.name, Port: o.Port, MAC: h.mac, Addresses: h.addrs, Queues: before.most(), Mode: attachMode(o.Mode),
	})
	if err != nil {
		return 0, explainAttach(d.name, h.mtu, err)
	}
	now, err := d.nic.channels(d.name)
	if err != nil {
		return 0, err
	}
	d.added = max(0, now.receive()-before.receive())
	return now.toOpen(d.name, o.Queues)
}

// attachMode is where the program has to run for a mode.
func attachMode(m Mode) bpf.Mode {
	switch m {
	case Auto:
		return bpf.Auto
	case Generic:
		return bpf.Generic
	case ZeroCopy, Copy: // need the driver
	}
	return bpf.Native
}

// openQueues opens a socket on each queue.
func (d *Device) openQueues(queues int, h *host, o *Options) error {
	where := place{ifindex: d.ifindex, name: d.name, mode: o.Mode, ring: d.nic.ring(d.name)}
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
func (d *Device) Name() string {
	if now := d.renamed.Load(); now != nil {
		return *now
	}
	return d.name
}

func (d *Device) rename(name string) { d.renamed.Store(&name) }

// end has sockets refuse new paths, with the reason.
func (d *Device) end(why error) {
	for _, s := range d.sockets {
		s.ended.Store(&why)
	}
}

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
		if m := Mode(s.Caps().Mode); m != ZeroCopy {
			mode = m
		}
	}
	return mode
}

// Refused is why a better mode was not granted to Auto, nil where none was refused with a reason.
func (d *Device) Refused() error {
	if d.refused != nil {
		return d.refused
	}
	return d.steer.NativeRefusal()
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
// then gives the port back. It waits for the Keeper's call that is under way. Closing again does nothing.
func (d *Device) Close() error {
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
	errs = append(errs, d.memory.release())
	d.memory = nil
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

func (r routes) Answer(to netip.Addr, from [6]byte) ([6]byte, bool) { return r.table.Answer(to, from) }

func (r routes) Release(h hop) { r.table.Release(h.(*route.Hop)) }
