package dat

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/internal/identity"
	"github.com/datxdp/datxdp/link"
)

// DefaultPort is the default UDP port, here and at peers: 0x4441, "DA" in ASCII.
const DefaultPort = 17473

// NoAsyncEVD is a value of Options.AsyncQLen: the IA has no asynchronous EVD, and asynchronous events are dropped.
const NoAsyncEVD = -1

// Options are the options of Open and OpenLink. The first open of a device and port in the process creates an adapter,
// and later opens share that adapter. So the fields Queues, Memory, Progress, NoOffload, Limits and Wrap take effect
// only at the first open. A later open with another Security fails, and one with the zero Security has the mode, keys
// and peers of the first. The other fields apply to each open.
type Options struct {
	// Port is the UDP port on which the adapter receives. 0 means DefaultPort. Over UDP, the value 0 also allows
	// another port: if a different process has DefaultPort, the system picks a free port. IAAttr.Port and the log show
	// the port.
	Port uint16
	// PeerPort is the UDP port of the peers to which this open connects. 0 means the value of Port, or DefaultPort if
	// Port is 0 too.
	PeerPort uint16
	// Queues is the number of receive queues to use, at most those that the device has. 0 means all of them.
	Queues int
	// Memory is the number of bytes that IA.Alloc can allocate; 0 means none. Over AF_XDP, the kernel locks that memory
	// in RAM, and counts it as locked memory once for each queue.
	Memory int
	// Progress says how goroutines that wait use the processor. The option "progress=busy" in a name overrides it.
	Progress Progress
	// NoOffload turns off the segmentation offload of kernel UDP (UDP_SEGMENT, UDP_GRO): each packet passes the kernel by
	// itself. The option "offload=off" in a name does the same. Over AF_XDP, NoOffload has no effect.
	NoOffload bool
	// AsyncQLen is the queue length, in events, of the asynchronous EVD. 0 means 64. NoAsyncEVD means no such EVD.
	AsyncQLen int
	// AsyncEVD is the asynchronous EVD of this open. If AsyncEVD is nil, this open creates its own asynchronous EVD.
	// Otherwise AsyncEVD must be an EVD of another open of the same adapter, created with EVDAsync. That EVD then gets
	// the asynchronous events of both opens, and remains when this IA is closed.
	AsyncEVD *EVD
	// Limits are the timeouts of connections. The option "silence=30s" in a name overrides Limits.GiveUp.
	Limits Limits
	// Security says whether the adapter is in secure mode.
	Security Security
	// Wrap returns a link on top of a link of the device, such as a packet trace or a fault injector. Wrap is called
	// once for each link of the device, before the first packet. When the adapter is closed, it closes the returned
	// links first, and then the device. If Wrap is nil, the device's links are used directly.
	Wrap func(link.Link) link.Link
	// Logger logs when the adapter is opened and closed, and what happens to the connections of this open. If Logger is
	// nil, only warnings about the adapter are logged, such as a fallback to UDP or a key log; slog.Default logs them.
	Logger *slog.Logger

	ia string // name in log lines; Open and OpenLink set it
}

// Limits are the timeouts of connections. 0 means the default. A negative time is ErrInvalidParameter. A time above
// the maximum is reduced to the maximum.
type Limits struct {
	// GiveUp is the time that a peer may be silent while data is unacknowledged. After that the connection breaks.
	// Default 10 s, maximum 60 s. The default is long because a debugger, a snapshot or a migration may stop a host for
	// seconds, and a network may need seconds to find another path. If the process of a peer ends, the host of the peer
	// reports that, and the connection breaks sooner.
	GiveUp time.Duration
	// NotReady is the time that a message may wait for the peer to post a receive. After that the connection breaks.
	// Default 30 s.
	NotReady time.Duration
	// KeepAlive is the time that a peer may be silent on an idle connection before this side sends keep-alives. If the
	// peer does not answer the keep-alives for the time GiveUp, the connection breaks. Default 10 s, maximum 60 s.
	KeepAlive time.Duration
	// ListenGrace is the time for which the active side repeats its connection request after the answer "no listener",
	// before it reports the error. uDAPL programs often publish their address before they listen. Default 1 s.
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

// MaxName is the maximum size of an adapter name in C, in bytes, with the terminating zero (DAT_NAME_MAX_LENGTH). A
// name in Go has at most MaxName-1 bytes.
const MaxName = 256

// Open opens an adapter by name (dat_ia_open). It looks for the name among the providers added with AddProvider, then
// in the registry (Providers). If neither has the name, the name must describe the device:
//
//	xdp:eth0        AF_XDP on an interface, in the first of these modes that works: zero-copy, copy, generic
//	xdp:eth0,copy   AF_XDP on an interface, in this mode only: zero-copy, copy or generic
//	udp:10.0.0.1    a kernel UDP socket on an address of this host; needs no privilege
//	udp:eth0        the same on the first address of an interface, IPv4 before IPv6
//	auto:eth0       like xdp:eth0 or, if AF_XDP fails, UDP on the interface's address
//	auto:eth0,copy  like xdp:eth0,copy: with a mode, auto does not try UDP
//
// Options may follow the name. They override options in o: "xdp:eth0 port=4000 peerport=4000 queues=2 silence=30s
// progress=busy". The option offload=off is for kernel UDP (Options.NoOffload). The options key=FILE, peers=FILE,
// known=FILE, announce and insecure are for secure mode (Options.Security).
//
// Clients look for a service at an address, a qualifier and, unless they are given a port, the port DefaultPort. So of all
// processes of this host (on Linux, of its network namespace) that open an address without a port, or with DefaultPort, one
// at a time can listen on a qualifier. The claim ends with the service point or the process. With a given port, the
// qualifiers are those of that port.
//
// IA.Query returns the granted mode. An adapter may be opened many times. Each open returns an IA of its own; closing
// an IA does not affect the other IAs.
//
// Errors:
//
//   - ErrProviderNotFound: there is no such device. The subtype is SubNameNotRegistered if the name is unknown.
//   - ErrInvalidParameter: the name is not a valid description of a device, or AsyncQLen is negative and not
//     NoAsyncEVD, or a file of Security is wrong, or the adapter is open with another Security.
//   - ErrInvalidHandle: AsyncEVD is not an asynchronous EVD of this adapter.
//   - ErrInsufficientResources: a resource of the system, or AsyncQLen, exceeds its limit.
//   - ErrPrivilegesViolation: the system denies access.
//   - ErrModelNotSupported: the processor cannot do secure mode.
func Open(name string, o Options) (*IA, error) {
	if len(name) >= MaxName {
		return nil, fail(errArg1, "a name of %d bytes; the maximum is %d", len(name), MaxName-1)
	}
	o.setDefaults()
	if p := findProvider(name); p != nil {
		return p.openIA(o)
	}
	description, err := lookUp(name)
	if err != nil {
		return nil, err
	}
	return openDevice(name, description, o)
}

// openDevice opens a device and makes an IA with a name. description describes the device, as xdp:eth0 does.
func openDevice(name, description string, o Options) (*IA, error) {
	n, err := ianame.Parse(description)
	if err != nil {
		return nil, nameError(description, err)
	}
	if err := o.override(n); err != nil {
		return nil, err
	}
	if n, err = n.OnAddress(); shortage(err) {
		return nil, &openError{name, ErrInsufficientResources, err}
	} else if err != nil {
		return nil, fail(ErrProviderNotFound, "opening %s: %v", name, cmp.Or(findInterface(n.Interface), err))
	}
	o.ia = identity.Redact(name) // key= may have a key and not a file
	o.PeerPort = cmp.Or(o.PeerPort, o.Port, DefaultPort)
	key := func(device string, port uint16) string { return fmt.Sprintf("%s@%s:%d", device, namespace(), port) }
	a, err := acquire(key(n.Device, o.Port), o, func() (device, error) {
		dev, err := openLinks(n, o)
		if err != nil {
			return dev, err
		}
		dev.claim(o)
		if dev.links[0].Local().Port() == DefaultPort {
			dev.key = key(n.Device, DefaultPort)
		}
		return dev, nil
	}, sameDevice(n, o.Port, key)...)
	if err != nil {
		return nil, &openError{name, openStatus(err), explainBusy(n, err)}
	}
	return newIA(a, name, o)
}

// sameDevice returns the keys under which the device may be open, besides its own: with the default port, and with another
// name of the interface.
func sameDevice(n ianame.Name, port uint16, key func(device string, port uint16) string) (all []candidate) {
	ports := []uint16{port}
	if port == 0 {
		all = append(all, candidate{key: key(n.Device, DefaultPort), sameName: true})
		ports = []uint16{0, DefaultPort}
	}
	for _, device := range n.Others() {
		for _, p := range ports {
			all = append(all, candidate{key: key(device, p), mode: strings.TrimPrefix(n.Mode, "auto")})
		}
	}
	return all
}

// explainBusy says how this process has an interface open that another open finds busy.
func explainBusy(n ianame.Name, err error) error {
	if !errors.Is(err, link.ErrBusy) {
		return err
	}
	for _, device := range append(n.Others(), n.Device) {
		if port, mode := openHere(device); port != 0 {
			return &busyError{fmt.Sprintf("this process has the interface open as \"%s port=%d\", in %s mode: open it with this port and without another mode, or use kernel UDP beside it (udp:ADDRESS port=N)",
				device, port, mode), err}
		}
	}
	return err
}

// busyError is the reason why a device is busy, in place of the text of err.
type busyError struct {
	text string
	err  error
}

func (e *busyError) Error() string { return e.text }
func (e *busyError) Unwrap() error { return e.err }

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

// nameError returns the DAT error for a name that cannot be parsed. The argument err is the error of ianame.Parse.
func nameError(name string, err error) error {
	if errors.Is(err, ianame.ErrNotAdapter) {
		return fail(errName, "%v; nor is it in the registry", err)
	}
	return fail(ErrInvalidParameter, "opening %s: %v", name, err)
}

// openError is the reason why an adapter cannot be opened.
type openError struct {
	name   string
	status error // the DAT error
	err    error // the error of the link or device
}

func (e *openError) Error() string {
	text := identity.Redact(fmt.Sprintf("dat: opening %s: %v", e.name, e.err)) // key= may have a key and not a file
	if errors.Is(e.err, syscall.EMFILE) {
		text += ": raise the limit of open files (ulimit -n, or LimitNOFILE= of systemd)"
	}
	return text
}

func (e *openError) Unwrap() []error { return []error{e.status, e.err} }

// openStatus returns the DAT error for err, the error of a device that could not be opened.
func openStatus(err error) error {
	var r Return
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, fs.ErrPermission):
		return ErrPrivilegesViolation
	case errors.Is(err, fs.ErrInvalid):
		return ErrInvalidParameter
	case errors.Is(err, link.ErrBusy), shortage(err):
		return ErrInsufficientResources
	case errors.Is(err, link.ErrUnsupported), errors.Is(err, syscall.EADDRNOTAVAIL):
		return ErrProviderNotFound
	default:
		return ErrInternalError
	}
}

// shortage reports whether the process or the host has too few descriptors, or too little memory.
func shortage(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

var anonymous atomic.Uint64

// OpenLink opens an adapter over links of the caller, one for each queue. Such a link may be a link of package xdp or
// udplink, for example with options that a name cannot express, or another implementation of link.Link. The adapter
// owns the links: when the adapter is closed, or when OpenLink fails, the links are closed. Errors: ErrInvalidParameter
// (no link, Options), ErrInvalidHandle (AsyncEVD).
func OpenLink(o Options, links ...link.Link) (*IA, error) {
	o.setDefaults()
	o.ia = "link"
	key := fmt.Sprintf("link#%d", anonymous.Add(1))
	a, err := acquire(key, o, func() (device, error) { return device{links: links}, nil })
	if err != nil {
		return nil, err
	}
	return newIA(a, o.ia, o)
}
