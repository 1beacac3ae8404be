package dat

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/link"
)

// DefaultPort is the default UDP port of this adapter and of peers: 0x4441, "DA".
const DefaultPort = 17473

// NoAsyncEVD, as Options.AsyncQLen, opens an adapter without an asynchronous EVD. Asynchronous errors are dropped.
const NoAsyncEVD = -1

// Options are the options of an open. Queues, Memory, Limits and Wrap take effect only at the first open of a device
// and port in the process; later opens share that adapter. The other fields apply to each open.
type Options struct {
	// Port is the UDP port to receive on. 0 means DefaultPort. If another process has that port and the device is a
	// UDP address, the system picks a port; IAAttr.Port and the log show which.
	Port uint16
	// PeerPort is the UDP port of the peers that this open connects to. 0 means Port, and DefaultPort if Port is 0
	// too.
	PeerPort uint16
	// Queues is the maximum number of receive queues to use. 0 means all of the device.
	Queues int
	// Memory is the number of bytes that IA.Alloc can hand out; 0 means none. Over AF_XDP the kernel locks that
	// memory in RAM and counts it once for each queue.
	Memory int
	// AsyncQLen is the queue length, in events, of the asynchronous EVD. 0 means 64. NoAsyncEVD means no such EVD.
	AsyncQLen int
	// AsyncEVD is an asynchronous EVD to share: one of another open of the same adapter, created with EVDAsync. It
	// stays open when this IA closes. Nil means that the open creates its own.
	AsyncEVD *EVD
	// Limits are the timeouts of connections. The option "silence=30s" of a name overrides Limits.GiveUp.
	Limits Limits
	// Wrap puts a layer of the caller, such as a packet trace or a fault injector, over each link of the device. It
	// is called once for each link, before the first packet. Closing the adapter closes the layers first, then the
	// device. Nil means no layer.
	Wrap func(link.Link) link.Link
	// Logger logs when the adapter is opened and closed, and what happens to the connections of this open. Nil means
	// no log, except that slog.Default logs a fallback from AF_XDP to UDP.
	Logger *slog.Logger
}

// Limits are the timeouts of connections. 0 means the default. A negative time is ErrInvalidParameter. A time above
// the maximum is reduced to the maximum.
type Limits struct {
	// GiveUp is how long a peer may be silent while data is unacknowledged before the connection breaks. Default 10
	// s, maximum 60 s. The default is that long because a debugger, a snapshot or a migration stops a host for
	// seconds, and a network takes as long to find another path. A peer whose process has ended is detected sooner:
	// its host reports it.
	GiveUp time.Duration
	// NotReady is how long a message may wait for the peer to post a receive before the connection breaks. Default 30
	// s.
	NotReady time.Duration
	// KeepAlive is how long a peer may be silent on an idle connection before it is probed. If the peer stays silent,
	// the connection breaks after a further GiveUp. Default 10 s, maximum 60 s.
	KeepAlive time.Duration
	// ListenGrace is how long the active side repeats its request after the answer "no listener" before it reports
	// the error. uDAPL programs often publish their address before they listen. Default 1 s.
	ListenGrace time.Duration
}

// DefaultOptions returns the values that Open uses for zero fields.
func DefaultOptions() Options { return Options{AsyncQLen: 64} }

func (o *Options) setDefaults() {
	d := DefaultOptions()
	if o.AsyncQLen == 0 {
		o.AsyncQLen = d.AsyncQLen
	}
}

// MaxName is the size in bytes of the longest name of an adapter, with its terminating zero in C
// (DAT_NAME_MAX_LENGTH). A name in Go has at most MaxName-1 bytes.
const MaxName = 256

// Open opens an adapter by name (dat_ia_open). It looks for the name among the providers added with AddProvider, then
// in the registry (Providers). If neither has the name, the name itself says what to open:
//
//	xdp:eth0       AF_XDP on an interface; add a mode as in xdp:eth0,zero-copy | copy | generic
//	udp:10.0.0.1   a kernel UDP socket on an address of this host; no privilege needed
//	auto:eth0      zero-copy, else copy, else generic, else udp on the interface's address; with a mode, that alone
//
// Options may follow the name, and override those of o: "xdp:eth0 port=4000 peerport=4000 queues=2 silence=30s".
//
// IA.Query returns the granted mode. An adapter may be opened many times. Each open is an IA of its own: closing one
// does not affect the others.
//
// Errors: ErrProviderNotFound, with subtype SubNameNotRegistered if the name is unknown; ErrInvalidParameter (the
// name, AsyncQLen); ErrInvalidHandle (AsyncEVD); ErrInsufficientResources; and ErrPrivilegesViolation if the system
// denies access.
func Open(name string, o Options) (*IA, error) {
	if len(name) >= MaxName {
		return nil, fail(errArg1, "a name of %d bytes; the most is %d", len(name), MaxName-1)
	}
	o.setDefaults()
	if p := registered(name); p != nil {
		return p.openIA(o)
	}
	what, err := lookUp(name)
	if err != nil {
		return nil, err
	}
	return openDevice(name, what, o)
}

// openDevice opens a device as an IA. The string what is a direct name or the instance data of a registry entry; name
// is the name of the IA.
func openDevice(name, what string, o Options) (*IA, error) {
	n, err := ianame.Parse(what)
	if err != nil {
		return nil, nameError(what, err)
	}
	if err := o.override(n); err != nil {
		return nil, err
	}
	o.PeerPort = cmp.Or(o.PeerPort, o.Port, DefaultPort)
	key := func(port uint16) string { return fmt.Sprintf("%s@%s:%d", n.Device, namespace(), port) }
	var also []string
	if o.Port == 0 {
		also = append(also, key(DefaultPort)) // an adapter that already has the default port serves an open without a port
	}
	a, err := acquire(key(o.Port), o, func() (device, error) {
		dev, err := openLinks(n, o)
		if err == nil && dev.links[0].Local().Port() == DefaultPort {
			dev.key = key(DefaultPort)
		}
		return dev, err
	}, also...)
	if err != nil {
		return nil, &openError{name, openStatus(err), err}
	}
	return newIA(a, name, o)
}

// openLinks opens the links of a device.
func openLinks(n ianame.Name, o Options) (device, error) {
	switch n.Kind {
	case ianame.UDP:
		return openUDP(n.Addr, o)
	case ianame.Auto:
		return openAuto(n, o)
	default:
		return openXDP(n, o)
	}
}

// nameError returns the DAT error for a name that the registry does not have and that is not a valid direct name.
func nameError(name string, err error) error {
	if errors.Is(err, ianame.ErrNotAdapter) {
		return fail(errName, "%v; nor is it in the registry", err)
	}
	return fail(ErrInvalidParameter, "opening %s: %v", name, err)
}

// openError is the reason why an adapter cannot be opened: the DAT error and the error of the link or device.
type openError struct {
	name   string
	status error
	err    error
}

func (e *openError) Error() string   { return fmt.Sprintf("dat: opening %s: %v", e.name, e.err) }
func (e *openError) Unwrap() []error { return []error{e.status, e.err} }

// openStatus returns the DAT error for an error of opening a device.
func openStatus(err error) error {
	var r Return
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, fs.ErrPermission):
		return ErrPrivilegesViolation
	case errors.Is(err, fs.ErrInvalid):
		return ErrInvalidParameter
	case errors.Is(err, link.ErrBusy):
		return ErrInsufficientResources
	case errors.Is(err, link.ErrUnsupported), errors.Is(err, syscall.EADDRNOTAVAIL):
		return ErrProviderNotFound
	default:
		return ErrInternalError
	}
}

var anonymous atomic.Uint64

// OpenLink opens an adapter over links of the caller, one for each queue. They may be links that packages xdp or
// udplink opened with options that a name cannot express, or the caller's own implementations of link.Link. The
// adapter owns the links: closing it closes them. If OpenLink fails, it closes them too. Errors: ErrInvalidParameter
// (no link, Options), ErrInvalidHandle (AsyncEVD).
func OpenLink(o Options, links ...link.Link) (*IA, error) {
	o.setDefaults()
	key := fmt.Sprintf("link#%d", anonymous.Add(1))
	a, err := acquire(key, o, func() (device, error) { return device{links: links}, nil })
	if err != nil {
		return nil, err
	}
	return newIA(a, "link", o)
}
