package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/udplink"
)

// mayUDP reports whether the adapter may use kernel UDP.
func (x *exam) mayUDP() bool { return x.kind == ianame.UDP || x.kind == ianame.Auto }

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
	return found
}
