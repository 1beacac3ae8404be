package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/identity"
)

// checkReach reports the answer from the peer's port. It reports a missing answer only if there was enough time to
// wait, and if an answer could have been heard.
func checkReach(ctx context.Context, x *exam) []Finding {
	x.probe.run(ctx, x)
	found := x.reached(ctx)
	if ctx.Err() != nil {
		return found
	}
	elsewhere := x.elsewhere()
	if len(elsewhere) > 0 && elsewhere[0].Severity == Error {
		return elsewhere
	}
	return append(found, elsewhere...)
}

// reached returns the finding about the probe.
func (x *exam) reached(ctx context.Context) []Finding {
	switch {
	case x.forbidden && x.mayOnlyUDP():
		return x.forbids()
	case x.forbidden:
		return info("whether an adapter answers at %v cannot be heard: a rule of this host forbids kernel UDP to send to the port. AF_XDP passes it by", x.peerAt())
	case x.probe.adapter:
		return x.answered(ctx)
	case ctx.Err() != nil && !x.probe.refused:
		return nil
	case x.probe.busy && !x.probe.refused:
		return info("whether an adapter answers at %v cannot be heard: UDP port %d is taken here", x.peerAt(), x.Port)
	case x.filtered && !x.probe.answered() && x.mayOnlyUDP():
		return x.filters()
	case x.filtered && !x.probe.answered():
		return info("whether an adapter answers at %v cannot be heard: rp_filter of this host drops what comes from there. AF_XDP passes it by", x.peerAt())
	case x.deaf && !x.probe.refused:
		return x.deafFinding()
	case x.loops && slices.Contains(x.addrs, x.peerAddr()):
		return info("no adapter answers at %v, which is this adapter's own address", x.peerAt())
	}
	return x.silence()
}

func (x *exam) peerAt() netip.AddrPort { return netip.AddrPortFrom(x.Peer, x.remotePort()) }

// answered reports an adapter at the peer, whose mode must be ours.
func (x *exam) answered(ctx context.Context) []Finding {
	switch {
	case x.probe.secure && !x.secure:
		return failure(fmt.Sprintf("the adapter at %v is in secure mode", x.peerAt()), "It refuses an adapter in plaintext mode.",
			"give this adapter a key (key=FILE) and the line of that host in a file of peers (peers=FILE); docs/SECURITY.md, Secure mode", "")
	case !x.probe.secure && x.secure:
		return failure(fmt.Sprintf("the adapter at %v is in plaintext mode", x.peerAt()), "An adapter in secure mode does not connect to it.",
			"give that adapter a key (key=FILE) and a file of peers (peers=FILE), or leave out those of this one in a trusted network", "")
	case x.secure:
		return x.handshake(ctx)
	}
	return ok("an adapter answers at %v", x.peerAt())
}

// handshake reports whether the adapter at the peer and this one know each other's keys. It does not ask with known= or
// a key log, because that writes a file.
func (x *exam) handshake(ctx context.Context) []Finding {
	if x.files.Known != "" || identity.KeyLogFile() != "" {
		return ok("an adapter in secure mode answers at %v", x.peerAt())
	}
	err := x.probe.authenticate(ctx, x.leaves(), x.peerAt(), dat.Security{KeyFile: x.files.Key, PeersFile: x.files.Peers})
	switch {
	case err == nil:
		return ok("an adapter in secure mode answers at %v, and the two know each other's keys", x.peerAt())
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, errSilentHandshake):
		return failure(fmt.Sprintf("the adapter at %v is in secure mode, and does not answer our handshake", x.peerAt()),
			"One of the two does not have the other's key.",
			"in the file of peers of each host, write a line with the other's public key, not expired, and with its address if it has from=; docs/SECURITY.md, Secure mode", "")
	}
	return warning(fmt.Sprintf("the adapter at %v is in secure mode, and its key is not known here: %v", x.peerAt(), err), "Only a program that names the key can connect.",
		"write a line with its public key and address (from=) in the file of peers, or give the program its key; docs/SECURITY.md, Secure mode", "")
}

// deafFinding reports that an answer of the peer cannot be heard. Only kernel UDP needs what drops it, and another check
// has reported that.
func (x *exam) deafFinding() []Finding {
	return info("whether an adapter answers at %v cannot be heard: a rule of this host drops what comes to UDP port %d. AF_XDP passes it by", x.peerAt(), x.Port)
}

// silence reports that no adapter answered.
func (x *exam) silence() []Finding {
	switch {
	case x.probe.refused:
		return failure(fmt.Sprintf("%v is up, but no adapter has UDP port %d open there", x.Peer, x.remotePort()),
			"Its kernel answers that the port is closed, or its firewall answers so.", "start the program there, or let the port through the firewall; a program is such as",
			fmt.Sprintf("datbench server --ia auto:INTERFACE%s", portFlag(x.remotePort())))
	case x.probe.echoed > 0:
		return failure(fmt.Sprintf("%v is up, but UDP port %d does not answer", x.Peer, x.remotePort()),
			"A firewall drops the packets on their way, or a program that is not a DAT adapter has the port.",
			"on that host, look with: datbench doctor; and let the port through its firewall, as with",
			fmt.Sprintf("iptables -I INPUT -p udp --dport %d -j ACCEPT", x.remotePort()))
	}
	return failure(fmt.Sprintf("%v does not answer, neither on UDP port %d nor to ping", x.Peer, x.remotePort()),
		"It is down, or a firewall drops what is sent to it.", "check that the host is up; on it, run: datbench doctor", "")
}

// portFlag returns the flag of datbench for a UDP port.
func portFlag(port uint16) string {
	if port == dat.DefaultPort {
		return ""
	}
	return fmt.Sprintf(" --port %d", port)
}
