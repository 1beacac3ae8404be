package xdp

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// LayerFault checks whether a device on this interface would open but receive no packets. fault is the reason, and
// remedy is what the user can do about it. Both texts are empty if the device would receive packets. local is the
// device's own address. Errors come from netlink.
func LayerFault(ifindex int, local netip.Addr) (fault, remedy string, err error) {
	t, err := route.Open(ifindex)
	if err != nil {
		return "", "", fmt.Errorf("xdp: interface %d: %w", ifindex, err)
	}
	defer t.Close()
	now := t.Interface()
	fault, remedy = layerFault(&now, local)
	return fault, remedy, nil
}

func layerFault(now *route.Interface, local netip.Addr) (fault, remedy string) {
	switch {
	case !now.Ethernet:
		return fmt.Sprintf("a packet of a %s interface has no Ethernet header", now.Kind),
			fmt.Sprintf("use the interface below it, or kernel UDP (udp:%v)", local)
	case now.Kind == "bond", now.Kind == "team":
		// The program runs on the members of the bond. A packet arrives on a queue of a member, and keeps that queue's
		// number in generic mode. The kernel (xsk_rcv_check) drops a packet if it arrived on another interface or queue
		// than that of the socket. So a socket of the bond receives nothing.
		return "AF_XDP does not receive the packets of a " + now.Kind,
			fmt.Sprintf("use kernel UDP (udp:%v), or take a member out of it, give that an address and open it", local)
	case (now.Kind == "macvlan" || now.Kind == "macvtap") && local.Is4():
		if below := alsoAnswers(now.Below); below != "" {
			return fmt.Sprintf("%s below it also answers ARP requests for %v, and AF_XDP does not see what is sent to %[1]s", below, local),
				fmt.Sprintf("sysctl -w net.ipv4.conf.%s.arp_ignore=1, or use kernel UDP (udp:%v)", strings.ReplaceAll(below, ".", "/"), local)
		}
	}
	return "", ""
}

// refuseLayer returns the result of layerFault as an error.
func refuseLayer(now *route.Interface, local netip.Addr) error {
	fault, remedy := layerFault(now, local)
	if fault == "" {
		return nil
	}
	return &openError{fmt.Sprintf("xdp: %s: %s: %s", now.Name, fault, remedy), []error{link.ErrUnsupported}}
}

// alsoAnswers returns the name of the interface with the given index if the interface answers ARP requests for
// addresses of the namespace's other interfaces. With default settings it does. Otherwise alsoAnswers returns "".
//
// System calls: netlink RTM_GETLINK; files of /proc/sys/net.
func alsoAnswers(index int) string {
	if index == 0 {
		return ""
	}
	ifi, err := net.InterfaceByIndex(index)
	if err != nil || ifi.Flags&net.FlagUp == 0 || ignoresARP("all") || ignoresARP(ifi.Name) {
		return ""
	}
	return ifi.Name
}

// ignoresARP reports whether arp_ignore is set: an interface then answers ARP only for its own addresses.
func ignoresARP(conf string) bool {
	value, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + conf + "/arp_ignore")
	return err == nil && strings.TrimSpace(string(value)) != "0"
}
