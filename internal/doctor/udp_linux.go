package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/udplink"
)

// mayUDP reports whether the adapter may use kernel UDP.
func (x *exam) mayUDP() bool { return x.kind == ianame.UDP || x.kind == ianame.Auto }

// mayOnlyUDP reports whether the adapter uses kernel UDP, by its name or because auto: falls back to it.
func (x *exam) mayOnlyUDP() bool { return x.kind == ianame.UDP || x.fallback != "" }

// checkBuffers compares the kernel's limit for socket buffers with the size that the link requests. With CAP_NET_ADMIN
// the link may exceed the limit.
func checkBuffers(_ context.Context, x *exam) []Finding {
	limit, err := strconv.Atoi(sysctl("net/core/rmem_max"))
	want := udplink.DefaultOptions().Buffer
	if !x.mayUDP() || err != nil || has(x.caps, unix.CAP_NET_ADMIN) || limit >= want {
		return nil
	}
	return warning(fmt.Sprintf("a UDP socket may hold %d KiB, datxdp asks for %d KiB", limit>>10, want>>10),
		"Packets are dropped when this process is late, and are sent again.", "raise the limit",
		as(fmt.Sprintf("sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d", want, want)))
}

// checkFilters reports packet filters, which apply to a UDP socket. AF_XDP receives packets before these filters.
func checkFilters(_ context.Context, x *exam) []Finding {
	x.deaf = !hears(netip.AddrPortFrom(x.from, x.Port))
	if !x.mayUDP() {
		return nil
	}
	var found []Finding
	if max(sysctl("net/ipv4/conf/all/rp_filter"), sysctl("net/ipv4/conf/"+x.name()+"/rp_filter")) == "1" {
		found = append(found, Finding{Severity: Info, Found: "rp_filter is strict on " + x.name(),
			Means: "UDP packets whose way back leaves by another interface are dropped."})
	}
	if tables := strings.Fields(readLine("/proc/thread-self/net/ip_tables_names")); slices.Contains(tables, "filter") {
		found = append(found, Finding{Severity: Info, Found: "iptables has a filter table",
			Means: fmt.Sprintf("It must let UDP port %d in; packets that AF_XDP takes do not pass it.", x.Port)})
	}
	if x.deaf {
		return append(found, x.onlyUDP(Error, x.deafRule()))
	}
	for _, c := range closedChains(x.Port) {
		found = append(found, x.onlyUDP(Warning, x.closed(c)))
	}
	return found
}

// onlyUDP returns a finding that stops kernel UDP, and no more than an info if the adapter uses AF_XDP.
func (x *exam) onlyUDP(s Severity, f Finding) Finding {
	if f.Severity = s; !x.mayOnlyUDP() {
		f.Severity = Info
	}
	return f
}

func (x *exam) deafRule() Finding {
	return Finding{Found: fmt.Sprintf("a rule of this host drops what comes to UDP port %d of %v", x.Port, x.from),
		Means: "Kernel UDP receives nothing. AF_XDP passes the rule by.", Fix: "find the rule, and let the port in",
		Command: as("nft list ruleset || iptables -S")}
}

func (x *exam) closed(c chain) Finding {
	return Finding{Found: fmt.Sprintf("the packet filter drops what no rule lets in, and no rule of its chain %s names UDP port %d", c, x.Port),
		Means: "Answers to what has left are not enough: an adapter over AF_XDP sends from other ports than it receives on.",
		Fix:   "let the port in from every source port, as with", Command: as(fmt.Sprintf("nft insert rule %s udp dport %d accept", c, x.Port))}
}

// hearLimit is the time that a packet takes at most over the loopback interface.
const hearLimit = 100 * time.Millisecond

// hears sends packets from an address of this host to a port of it, and reports whether one arrived. It returns true if
// that cannot be tried: the port is in use, say.
//
// System calls: socket, bind, connect, sendto, recvfrom.
func hears(at netip.AddrPort) bool {
	in, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return true
	}
	defer in.Close()
	out, err := origin{AddrPort: netip.AddrPortFrom(at.Addr(), 0)}.dial(at)
	if err != nil {
		return true
	}
	defer out.Close()
	for range 2 {
		if _, err := out.Write([]byte{0}); err != nil {
			return true // a rule for output, or no loopback
		}
		if err := in.SetReadDeadline(time.Now().Add(hearLimit)); err != nil {
			return true
		}
		if _, _, err := in.ReadFromUDPAddrPort(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		}
	}
	return isDown("lo")
}
