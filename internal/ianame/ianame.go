// Package ianame parses the names of interface adapters, such as "xdp:eth0,zero-copy port=4000".
//
// A name is KIND:DEVICE or, for an interface, KIND:DEVICE,MODE. Options follow after spaces, as KEY=VALUE.
package ianame

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the first part of a name.
type Kind string

// Kinds of names.
const (
	XDP  Kind = "xdp"  // AF_XDP on an interface
	UDP  Kind = "udp"  // a kernel UDP socket on an address of this host, which may be given by its interface
	Auto Kind = "auto" // AF_XDP if available, otherwise UDP; with a mode only AF_XDP, because a mode requested by name is never replaced
)

// Errors that Parse wraps.
var (
	// ErrNotAdapter: the text does not have the form KIND:DEVICE, or the kind is unknown.
	ErrNotAdapter = errors.New("not an adapter")
	// ErrInvalid: the text names an adapter, but its mode, address or an option is wrong.
	ErrInvalid = errors.New("invalid")
)

// Name is a parsed name. Missing numbers are zero.
type Name struct {
	Device    string // the name without options: "xdp:eth0,copy"
	Kind      Kind
	Interface string     // for XDP and Auto; for UDP, if the name has no address
	Mode      string     // for XDP and Auto: "zero-copy", "copy", "generic"; "" and "auto" mean the best
	Addr      netip.Addr // for UDP

	Port      uint16        // port=N
	PeerPort  uint16        // peerport=N
	Queues    int           // queues=N
	Silence   time.Duration // silence=TIME
	Progress  string        // progress=MODE: "adaptive", "busy" or "interrupts"
	NoOffload bool          // offload=off
	Key       string        // key=FILE
	Peers     string        // peers=FILE
	Known     string        // known=FILE
	Announce  bool          // announce
	Insecure  bool          // insecure
}

// Limits of the option "silence". With a shorter time, connections would break whenever a host is busy.
const (
	MinSilence = 100 * time.Millisecond
	MaxSilence = time.Minute
)

// Check returns an error if the value of an option is out of its range. It wraps ErrInvalid.
func (n *Name) Check() error {
	if s := n.Silence; s != 0 && (s < MinSilence || s > MaxSilence) {
		return invalid("silence=%v is not a time from %v to %v", s, MinSilence, MaxSilence)
	}
	return nil
}

// Parse parses a name. Its errors wrap ErrNotAdapter or ErrInvalid and say what to write instead.
func Parse(text string) (Name, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Name{}, &parseError{ErrNotAdapter, "an adapter needs a name: xdp:INTERFACE, auto:INTERFACE or udp:ADDRESS"}
	}
	n := Name{Device: words[0]}
	if err := n.parseDevice(); err != nil {
		return Name{}, err
	}
	for i, w := range words[1:] {
		key := optionKey(w)
		if slices.ContainsFunc(words[1:i+1], func(other string) bool { return optionKey(other) == key }) {
			return Name{}, invalid("%s is there twice: write it once", key)
		}
		if err := n.parseOption(w); err != nil {
			return Name{}, err
		}
	}
	return n, nil
}

// optionKey returns the name of an option.
// Others returns the other values of Device that name the same interface, for XDP and Auto.
func (n *Name) Others() (all []string) {
	if n.Kind == UDP {
		return nil
	}
	for _, kind := range []Kind{XDP, Auto} {
		for _, mode := range []string{"", ",auto", ",zero-copy", ",copy", ",generic"} {
			if device := string(kind) + ":" + n.Interface + mode; device != n.Device {
				all = append(all, device)
			}
		}
	}
	return all
}

func optionKey(word string) string {
	key, _, _ := strings.Cut(word, "=")
	return key
}

func (n *Name) parseDevice() error {
	kind, what, found := strings.Cut(n.Device, ":")
	if !found || what == "" {
		return &parseError{ErrNotAdapter, fmt.Sprintf("%q is not an adapter: write xdp:INTERFACE, auto:INTERFACE or udp:ADDRESS", n.Device)}
	}
	switch n.Kind = Kind(kind); n.Kind {
	case XDP, Auto:
		return n.parseInterface(what)
	case UDP:
		return n.parseAddr(what)
	default:
		return &parseError{ErrNotAdapter, fmt.Sprintf("%q is not an adapter: no kind is called %q, use xdp, auto or udp", n.Device, kind)}
	}
}

// parseInterface parses an interface, and the mode after the last comma. A name of an interface may have commas too.
func (n *Name) parseInterface(what string) error {
	n.Interface = what
	i := strings.LastIndexByte(what, ',')
	if i < 0 {
		return nil
	}
	switch mode := what[i+1:]; mode {
	case "", "auto", "zero-copy", "copy", "generic":
		n.Interface, n.Mode = what[:i], mode
		if mode != "" {
			n.Kind = XDP
		}
		return nil
	default:
		if exists(what) {
			return nil
		}
		return invalid("no mode is called %q: use zero-copy, copy or generic", mode)
	}
}

func (n *Name) parseAddr(what string) error {
	addr, err := netip.ParseAddr(what)
	switch {
	case err != nil && isInterface(what):
		n.Interface = what
		return nil
	case err != nil:
		return invalid("%q is neither an IP address nor an interface of this host, as udp: needs", what)
	}
	n.Addr = addr.Unmap()
	if addr.IsUnspecified() || addr.IsMulticast() {
		return invalid("a link needs one address of this host, %v is a wildcard or a group", addr)
	}
	return nil
}

func (n *Name) parseOption(word string) (err error) {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "port":
		n.Port, err = parseNumber(word, value)
	case "peerport":
		n.PeerPort, err = parseNumber(word, value)
	case "queues":
		var queues uint16
		queues, err = parseNumber(word, value)
		n.Queues = int(queues)
	case "silence":
		if n.Silence, err = time.ParseDuration(value); err != nil || n.Silence <= 0 {
			err = invalid("%q is not a time, as in silence=30s", word)
		}
	case "progress":
		switch n.Progress = value; value {
		case "adaptive", "busy", "interrupts":
		default:
			err = invalid("%q names no mode; use progress=adaptive, progress=busy or progress=interrupts", word)
		}
	case "offload":
		if n.NoOffload = value == "off"; !n.NoOffload {
			err = invalid("%q is not an option; use offload=off, or leave it out", word)
		}
	default:
		err = n.parseSecurity(word, key, value)
	}
	return err
}

// parseSecurity parses an option of secure mode. It is the last one that parses options.
func (n *Name) parseSecurity(word, key, value string) error {
	switch key {
	case "key":
		n.Key = value
	case "peers":
		n.Peers = value
	case "known":
		n.Known = value
	case "announce":
		return parseFlag(&n.Announce, word, key)
	case "insecure":
		return parseFlag(&n.Insecure, word, key)
	default:
		return invalid("there is no option %q; use port=N, peerport=N, queues=N, silence=TIME, progress=MODE, offload=off, key=FILE, peers=FILE, known=FILE, announce, insecure", word)
	}
	if value == "" {
		return invalid("%q names no file, as in %s=/etc/datxdp.%s", word, key, key)
	}
	return nil
}

// parseFlag parses an option without a value.
func parseFlag(flag *bool, word, key string) error {
	if *flag = word == key; !*flag {
		return invalid("%q is not an option; use %s, or leave it out", word, key)
	}
	return nil
}

func parseNumber(word, value string) (uint16, error) {
	n, err := strconv.ParseUint(value, 10, 16)
	if err != nil || n == 0 {
		return 0, invalid("%q is not a number from 1 to 65535", word)
	}
	return uint16(n), nil
}

func invalid(format string, args ...any) error {
	return &parseError{ErrInvalid, fmt.Sprintf(format, args...)}
}

// parseError describes a wrong name; class is for errors.Is.
type parseError struct {
	class error
	text  string
}

func (e *parseError) Error() string { return e.text }
func (e *parseError) Unwrap() error { return e.class }
