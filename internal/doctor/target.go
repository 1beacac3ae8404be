package doctor

import (
	"net/netip"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/ianame"
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

	kind         ianame.Kind
	ifname, mode string
	addr         netip.Addr
}

// resolve reads the name.
func (t *Target) resolve() error {
	if t.Port == 0 {
		t.Port = dat.DefaultPort
	}
	t.Peer = t.Peer.Unmap()
	if t.IA == "" {
		t.kind = ianame.XDP
		return nil
	}
	n, err := ianame.Parse(t.IA)
	if err != nil {
		return err
	}
	t.kind, t.ifname, t.mode, t.addr = n.Kind, n.Interface, n.Mode, n.Addr
	if n.Port != 0 {
		t.Port = n.Port
	}
	return nil
}

// native says whether the mode that was asked for needs the driver.
func (t *Target) native() bool { return t.mode == "zero-copy" || t.mode == "copy" }
