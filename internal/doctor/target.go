package doctor

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/datxdp/datxdp/dat"
)

// Kinds of adapter, as the first part of its name says them.
const (
	kindXDP  = "xdp"
	kindUDP  = "udp"
	kindAuto = "auto"
)

// Target is what to examine. The zero value asks about every interface.
type Target struct {
	// IA is the name of an adapter, such as "xdp:eth0,copy", "auto:eth0" or "udp:10.0.0.1"; empty for
	// every interface that is up.
	IA string
	// Port is the UDP port; 0 means [dat.DefaultPort].
	Port uint16
	// Peer is the address of a host to reach; the zero Addr for none.
	Peer netip.Addr
	// HostOnly leaves the interfaces out: a throw-away namespace has its own.
	HostOnly bool
	// Try opens the adapter for a moment, as a program would, to see what is granted. Some drivers take
	// their link down for a second when an XDP program comes or goes.
	Try bool

	// explaining leaves out what an explanation has no use for: see [Explain].
	explaining bool

	kind, ifname, mode string
	addr               netip.Addr
}

// resolve reads the name.
func (t *Target) resolve() error {
	if t.Port == 0 {
		t.Port = dat.DefaultPort
	}
	t.Peer = t.Peer.Unmap()
	if t.IA == "" {
		t.kind = kindXDP
		return nil
	}
	name, options, _ := strings.Cut(t.IA, " ")
	for option := range strings.FieldsSeq(options) {
		if text, is := strings.CutPrefix(option, "port="); is {
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil || port == 0 {
				return fmt.Errorf("%q is not a UDP port", option)
			}
			t.Port = uint16(port)
		}
	}
	kind, what, found := strings.Cut(name, ":")
	if !found || what == "" {
		return fmt.Errorf("%q is not an adapter: write xdp:INTERFACE, auto:INTERFACE or udp:ADDRESS", t.IA)
	}
	t.kind = kind
	switch kind {
	case kindXDP, kindAuto:
		t.ifname, t.mode, _ = strings.Cut(what, ",")
		if t.mode != "" {
			t.kind = kindXDP // a mode that is named is granted or refused: there is no falling back
		}
		return checkMode(t.mode)
	case kindUDP:
		addr, err := netip.ParseAddr(what)
		if err != nil {
			return fmt.Errorf("%q is not an IP address of this host, as udp: needs", what)
		}
		t.addr = addr.Unmap()
		return nil
	}
	return fmt.Errorf("no kind of adapter is called %q: use xdp, auto or udp", kind)
}

func checkMode(mode string) error {
	switch mode {
	case "", "auto", "zero-copy", "copy", "generic":
		return nil
	}
	return fmt.Errorf("no mode is called %q: use zero-copy, copy or generic", mode)
}

// native says whether the mode that was asked for needs the driver.
func (t *Target) native() bool { return t.mode == "zero-copy" || t.mode == "copy" }
