package doctor

import (
	"cmp"
	"net/netip"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/internal/identity"
)

// Target is what to examine. The zero value asks about every interface.
type Target struct {
	// IA is the name of an adapter, such as "xdp:eth0,copy", "auto:eth0" or "udp:10.0.0.1". If it is empty, every
	// interface that is up is examined.
	IA string
	// Port is the UDP port; 0 means [dat.DefaultPort].
	Port uint16
	// Peer is the address of a host to reach; the zero Addr for none.
	Peer netip.Addr
	// HostOnly skips the interfaces. It is for a program that makes interfaces in namespaces of its own.
	HostOnly bool
	// Try opens the adapter for a moment, as a program would, to see which mode is granted. Some drivers take their
	// link down for a second when an XDP program is attached or detached.
	Try bool

	// explaining skips checks that do not help to explain a failure: see [Explain].
	explaining bool

	kind         ianame.Kind
	ifname, mode string
	addr         netip.Addr
	maxQueues    int    // queues=N of the name; 0 for all
	peerPort     uint16 // UDP port of the peer; 0 for ours

	files              identity.Files
	announce, insecure bool
}

// resolve parses the name of the IA.
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
	if err = n.Check(); err != nil {
		return err
	}
	if on, err := n.OnAddress(); err == nil {
		n = on
	} // otherwise the checks of the interface say what is wrong with it
	t.kind, t.ifname, t.mode, t.addr, t.maxQueues = n.Kind, n.Interface, n.Mode, n.Addr, n.Queues
	t.files, t.announce, t.insecure = identity.Files{Key: n.Key, Peers: n.Peers, Known: n.Known}, n.Announce, n.Insecure
	t.Port = cmp.Or(n.Port, t.Port)
	t.peerPort = n.PeerPort
	return nil
}

// remotePort returns the UDP port of the peer.
func (t *Target) remotePort() uint16 { return cmp.Or(t.peerPort, t.Port) }

// native reports whether the requested mode needs the driver.
func (t *Target) native() bool { return t.mode == "zero-copy" || t.mode == "copy" }
