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

// DefaultPort is the UDP port that adapters use, and ask peers at, unless told otherwise: 0x4441, "DA".
const DefaultPort = 17473

// NoAsyncEVD as Options.AsyncQLen opens an adapter without an EVD of asynchronous errors: they are dropped.
const NoAsyncEVD = -1

// Options shape an adapter. Queues, Memory, Limits and Wrap count for the first open of a device on a port in a
// process, the others for each.
type Options struct {
	// Port is the UDP port to receive on. 0 means DefaultPort or, over UDP where another process has that, one that the
	// system picks: IAAttr.Port and the log tell.
	Port uint16
	// PeerPort is the UDP port at which peers are asked for connections; 0 means Port, and DefaultPort where that is 0.
	// It is each open's own.
	PeerPort uint16
	// Queues bounds the receive queues to use; 0 means all of the device.
	Queues int
	// Memory is how many bytes IA.Alloc can hand out; 0 means none. Over AF_XDP the kernel locks them, once for each queue.
	Memory int
	// AsyncQLen is how many events the EVD of asynchronous errors holds; 0 means 64. With NoAsyncEVD there is none.
	AsyncQLen int
	// AsyncEVD is an EVD of another open of the same device, made with EVDAsync, that asynchronous
	// errors go to; it is not closed with the IA. Nil means one of its own.
	AsyncEVD *EVD
	// Limits are the times after which a peer is given up. "silence=30s" in the name sets GiveUp.
	Limits Limits
	// Wrap puts a layer of the caller over each link of the device, such as one that writes down or drops what passes; it
	// is called once for each link, before any packet. The layer is closed first, then the device; nil means no layer.
	Wrap func(link.Link) link.Link
	// Logger hears when the adapter is opened and closed, and what becomes of the connections of this
	// open. Nil means nobody does, but for a fallback from AF_XDP to UDP, of which slog.Default hears.
	Logger *slog.Logger
}

// Limits are the times after which a peer is given up; 0 means the default. One below 0 is ErrInvalidParameter, one that is
// too long the most that there is.
type Limits struct {
	// GiveUp is how long a peer may be silent while data is unacknowledged before the connection breaks. Default 10 s, at
	// most a minute: a host may be stopped for some seconds, by a debugger, a snapshot or a migration, and a network needs
	// as long to find another way. A process that has ended is told sooner, by its host.
	GiveUp time.Duration
	// NotReady is how long a message may wait for a receive to be posted at the peer before the connection breaks.
	// Default 30 s.
	NotReady time.Duration
	// KeepAlive is how long a peer may be silent on an idle connection before it is probed; it is given up after GiveUp
	// more. Default 10 s, at most a minute.
	KeepAlive time.Duration
	// ListenGrace is how long an active side goes on asking after "no listener" before it reports it: uDAPL programs
	// announce themselves before they listen. Default 1 s.
	ListenGrace time.Duration
}

// DefaultOptions are what Open uses for zero fields.
func DefaultOptions() Options { return Options{AsyncQLen: 64} }

func (o *Options) setDefaults() {
	d := DefaultOptions()
	if o.AsyncQLen == 0 {
		o.AsyncQLen = d.AsyncQLen
	}
}

// MaxName is the length in bytes that the name of an adapter does not reach (DAT_NAME_MAX_LENGTH).
const MaxName = 256

// Open opens an adapter by name (dat_ia_open). A name is looked for among the providers that were
// added, then in the registry (Providers), and else says what to open:
//
//	xdp:eth0       AF_XDP on an interface; add a mode as in xdp:eth0,zero-copy | copy | generic
//	udp:10.0.0.1   a kernel UDP socket on an address of this host; no privilege needed
//	auto:eth0      zero-copy, else copy, else generic, else udp on the interface's address; with a mode, that alone
//
// Options may follow and go before those of o: "xdp:eth0 port=4000 peerport=4000 queues=2 silence=30s".
//
// The mode that was granted is in IA.Query. An adapter may be opened many times; opens are independent.
//
// Errors: ErrProviderNotFound, with subtype SubNameNotRegistered when nothing has the name;
// ErrInvalidParameter (the name, AsyncQLen), ErrInvalidHandle (AsyncEVD), ErrInsufficientResources, and
// ErrPrivilegesViolation where the system refuses.
func Open(name string, o Options) (*IA, error) {
	if len(name) >= MaxName {
		return nil, fail(errArg1, "a name of %d bytes; the most is %d", len(name), MaxName-1)
	}
	o.setDefaults()
	if p := registered(name); p != nil {
		return p.openIA(o)
	}
	what, err := configured(name)
	if err != nil {
		return nil, err
	}
	return openDevice(name, what, o)
}

// openDevice opens what a direct name or an entry of the registry says, as an IA of some name.
func openDevice(name, what string, o Options) (*IA, error) {
	n, err := ianame.Parse(what)
	if err != nil {
		return nil, nameError(what, err)
	}
	if err := o.take(n); err != nil {
		return nil, err
	}
	o.PeerPort = cmp.Or(o.PeerPort, o.Port, DefaultPort)
	key := func(port uint16) string { return fmt.Sprintf("%s@%s:%d", n.Device, namespace(), port) }
	var also []string
	if o.Port == 0 {
		also = append(also, key(DefaultPort)) // that somebody asked for serves too
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

// nameError is the DAT error for a name that is not in the registry and cannot be read.
func nameError(name string, err error) error {
	if errors.Is(err, ianame.ErrNotAdapter) {
		return fail(errName, "%v; nor is it in the registry", err)
	}
	return fail(ErrInvalidParameter, "opening %s: %v", name, err)
}

// openError is why an adapter cannot be opened, in the words of what refused it.
type openError struct {
	name   string
	status error
	err    error
}

func (e *openError) Error() string   { return fmt.Sprintf("dat: opening %s: %v", e.name, e.err) }
func (e *openError) Unwrap() []error { return []error{e.status, e.err} }

// openStatus is the DAT error for a device that cannot be opened.
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

// OpenLink opens an adapter over links of the caller, one for each queue: links that packages xdp and udplink have opened
// with options that a name has no words for, or links of the caller's own kind (link.Link). The adapter closes them, also
// when it fails. Errors: ErrInvalidParameter (no link, Options), ErrInvalidHandle (AsyncEVD).
func OpenLink(o Options, links ...link.Link) (*IA, error) {
	o.setDefaults()
	key := fmt.Sprintf("link#%d", anonymous.Add(1))
	a, err := acquire(key, o, func() (device, error) { return device{links: links}, nil })
	if err != nil {
		return nil, err
	}
	return newIA(a, "link", o)
}
