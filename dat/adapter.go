package dat

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/internal/claim"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// adapter owns the links and engines of one device. A process has one adapter for each open device. An IA is one open
// of an adapter. All opens of an adapter share the links and engines of that adapter.
type adapter struct {
	key string
	where
	host         *wire.Host
	drivers      []*driver                   // one for each link; each receive queue has one link
	engines      progress.Group              // the same drivers, for calls that poll all engines
	arena        arena                       // memory for IA.Alloc
	device       closer                      // closes the device and its links; nil: close each link
	readStats    func() deviceStats          // reads the counters of the device; nil if it has none
	tallies      tallies                     // counters that the engines do not keep
	feedMu       sync.Mutex                  // guards EVD.feedCounts of every EVD
	security     *security                   // keys and peers; nil in plaintext mode
	refs         int                         // number of open IAs; guarded by adaptersMu
	stopped      bool                        // the engines and links are closed; guarded by adaptersMu
	attr         IAAttr                      // its maximum numbers of objects apply to all opens together
	objectCounts [HandleSRQ + 1]atomic.Int32 // number of existing objects, by kind
	sharedMems   sharedMemories              // sizes of shared memory, by cookie
	mapChecker   mappingChecker              // checks that memory is mapped
	openIAs      iaSet                       // the open IAs
	endReason    atomic.Pointer[error]       // the reason why the device stopped moving packets; nil while it works
	numbering
}

// where has what addresses of the adapter need besides the IP address.
type where struct {
	port uint16 // UDP port
	zone string // zone of link-local addresses; empty: that of the links' address
}

// numbering has the numbers that an adapter gives out.
type numbering struct {
	pickCount  atomic.Uint32 // number of calls of pick, for round-robin
	lastZoneID atomic.Uint32 // the id of the newest protection zone
	quals      qualifiers
}

var (
	adaptersMu sync.Mutex
	adapters   = make(map[string]*adapter)
)

// device is the result of opening a device.
type device struct {
	links      []link.Link
	closer     closer             // closes the device and its links; nil: close each link
	readStats  func() deviceStats // reads the counters of the device; nil if it has none
	logLine    logLine            // a log message, written after the open
	portPicked bool               // the system has picked the UDP port
	zone       string             // zone of link-local addresses: the name of the interface; empty: that of the links' address
	key        string             // key of the adapter, with the port in use; empty: the key given to acquire
	claims     *claim.Address     // see qualifiers
	watch      func(*adapter)     // starts watching the device for changes, after the adapter is made; nil: do not watch
}

// closer closes a device and its links, in one step or in two.
type closer interface {
	// Stop closes everything but the memory that consumers use. The device can then be opened again.
	Stop() error
	// Close closes everything.
	io.Closer
}

// candidate is a key under which the adapter that is asked for may be open.
type candidate struct {
	key      string
	sameName bool   // the key differs only in the port
	mode     string // otherwise: the mode that is asked for; empty for any mode of AF_XDP
}

// suits reports whether an adapter that is open under the key is the one that is asked for.
func (c *candidate) suits(a *adapter) bool {
	mode := a.mode()
	return c.sameName || mode == c.mode || c.mode == "" && mode != "udp"
}

// mode is the granted mode.
func (a *adapter) mode() string { return a.drivers[0].link.Caps().Mode }

// openHere returns the port and the mode of the adapter over AF_XDP that this process has open under a name of its device
// in the namespace of the calling thread. The port is 0 if there is none.
func openHere(device string) (port uint16, mode string) {
	adaptersMu.Lock()
	defer adaptersMu.Unlock()
	for key, a := range adapters {
		if strings.HasPrefix(key, device+"@"+namespace()+":") && a.mode() != "udp" {
			return a.port, a.mode()
		}
	}
	return 0, ""
}

// acquire returns the open adapter that is registered under key or another key that suits, and counts one more open of
// it. If no such adapter is open, acquire calls openLinks, makes an adapter for the device that openLinks returns, and
// registers the adapter. An adapter whose device has ended is not shared: its opens keep it until they are closed.
func acquire(key string, o Options, openLinks func() (device, error), others ...candidate) (*adapter, error) {
	var dev device
	defer func() { dev.logLine.emit() }()
	adaptersMu.Lock()
	defer adaptersMu.Unlock()
	retireEnded()
	for _, c := range append([]candidate{{key: key, sameName: true}}, others...) {
		a := adapters[c.key]
		if a == nil || !c.suits(a) {
			continue
		}
		if err := a.security.allows(o.Security); err != nil {
			return nil, err
		}
		a.refs++
		return a, nil
	}
	var err error
	dev, err = openLinks()
	if err != nil {
		return nil, err
	}
	dev.wrap(o.Wrap)
	a, err := newAdapter(o, dev)
	if err != nil {
		return nil, errors.Join(err, dev.close())
	}
	a.key, a.refs = cmp.Or(dev.key, key), 1
	adapters[a.key] = a
	return a, nil
}

// wrap replaces each link by layer(link), a link on top of it (Options.Wrap). If layer is nil, it does nothing.
func (dev *device) wrap(layer func(link.Link) link.Link) {
	if layer == nil {
		return
	}
	over := make([]link.Link, len(dev.links))
	for i, l := range dev.links {
		over[i] = layer(l)
	}
	dev.links, dev.closer = over, &wrappedCloser{links: over, device: dev.closer}
}

// wrappedCloser closes first the links that Options.Wrap made, and then the device below these links. The order
// matters: a link that Options.Wrap made may hold frames of the device until the link is closed.
type wrappedCloser struct {
	links   []link.Link
	device  closer // nil: the links close it
	stopped bool
}

func (l *wrappedCloser) Stop() (err error) {
	if l.stopped {
		return nil
	}
	l.stopped = true
	for _, top := range l.links {
		err = errors.Join(err, top.Close())
	}
	if l.device != nil {
		err = errors.Join(err, l.device.Stop())
	}
	return err
}

func (l *wrappedCloser) Close() error {
	err := l.Stop()
	if l.device != nil {
		err = errors.Join(err, l.device.Close())
	}
	return err
}

func (dev *device) close() error {
	err := dev.claims.Close()
	if dev.closer != nil {
		return errors.Join(err, dev.closer.Close())
	}
	for _, l := range dev.links {
		err = errors.Join(err, l.Close())
	}
	return err
}

func newAdapter(o Options, dev device) (*adapter, error) {
	if len(dev.links) == 0 {
		return nil, fail(ErrInvalidParameter, "an adapter needs at least one link")
	}
	if o.Memory < 0 {
		return nil, fail(ErrInvalidParameter, "Options.Memory is %d bytes; use 0 or more", o.Memory)
	}
	if l := o.Limits; min(l.GiveUp, l.NotReady, l.KeepAlive, l.ListenGrace) < 0 {
		return nil, fail(ErrInvalidParameter, "Options.Limits has a negative time")
	}
	mode, err := o.Progress.mode()
	if err != nil {
		return nil, err
	}
	host, err := wire.NewHost(rand.Reader, wire.Limits(o.Limits))
	if err != nil {
		return nil, fmt.Errorf("dat: %w", err)
	}
	host.SetClock(progress.Now, progress.Switches)
	a := &adapter{host: host, device: dev.closer, readStats: dev.readStats, where: where{dev.links[0].Local().Port(), dev.zone}}
	a.quals.claims = dev.claims
	if err := a.addEngines(&o, dev.links); err != nil {
		return nil, err
	}
	a.arena = newArena(dev.links[0].Caps().Memory, o.Memory)
	a.attr = a.adapterAttr()
	a.attr.PortPicked = dev.portPicked
	a.engines.Mode = mode
	a.engines.Start()
	if a.security != nil {
		go a.watchSecurity()
	}
	if dev.watch != nil {
		dev.watch(a)
	}
	return a, nil
}

// addEngines makes an engine for each link, in secure mode if there is a key.
func (a *adapter) addEngines(o *Options, links []link.Link) (err error) {
	if a.security, err = openSecurity(o); err != nil {
		return err
	}
	a.security.secure(a.host)
	for _, l := range links {
		d, err := newDriver(a.host, l)
		if err != nil {
			a.security.abandon()
			return fmt.Errorf("dat: %w", err)
		}
		a.drivers = append(a.drivers, d)
		a.engines.Add(&d.Driver)
	}
	return nil
}

// release drops one reference to the adapter. The last release closes the links and the device.
func (a *adapter) release() error {
	adaptersMu.Lock()
	defer adaptersMu.Unlock()
	if a.refs--; a.refs > 0 {
		return nil
	}
	if adapters[a.key] == a {
		delete(adapters, a.key)
	}
	err := a.stop()
	a.mapChecker.close()
	if a.device != nil {
		err = errors.Join(err, a.device.Close())
	}
	return err
}

// stop closes the engines, the links and the device, but not the memory of Alloc, which consumers may still use. A second
// stop does nothing. adaptersMu is held.
func (a *adapter) stop() (err error) {
	if a.stopped {
		return nil
	}
	a.stopped = true
	a.security.stop() // first, because the worker gives its results to the engines and wakes their links
	a.engines.Close()
	a.security.forget()
	err = a.quals.claims.Close()
	if a.device != nil {
		return errors.Join(err, a.device.Stop())
	}
	for _, d := range a.drivers {
		err = errors.Join(err, d.link.Close())
	}
	return err
}

// pick returns the driver for a new connection, round-robin.
func (a *adapter) pick() *driver {
	return a.drivers[int(a.pickCount.Add(1))%len(a.drivers)]
}

// barrier waits until no engine can still access memory that was unregistered before the call.
func (a *adapter) barrier() { a.engines.Barrier() }

func (a *adapter) address() netip.Addr { return a.zoned(a.drivers[0].link.Local().Addr()) }

// zoned adds the zone of the adapter to a link-local IPv6 address that has none (RFC 4007), as package net does.
func (a *adapter) zoned(at netip.Addr) netip.Addr {
	if at.Is6() && at.IsLinkLocalUnicast() && at.Zone() == "" {
		return at.WithZone(cmp.Or(a.zone, a.drivers[0].link.Local().Addr().Zone()))
	}
	return at
}
