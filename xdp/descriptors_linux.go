package xdp

import "github.com/datxdp/datxdp/internal/route"

// File descriptors of an open device. TestDescriptors of internal/doctor counts them.
const (
	// deviceDescriptors are those of the XDP program with its maps and its link, of netlink, ethtool, the network namespace
	// and the watch. Each source port has one more.
	deviceDescriptors = 15
	// queueDescriptors are the AF_XDP socket, and what a waiter sleeps on.
	queueDescriptors = 4
	// extraDescriptors are the sockets that probe neighbours and hear ICMP. Open goes on without them.
	extraDescriptors = 4
)

// Descriptors returns the number of file descriptors that Open takes for an interface, for all its queues and addresses.
// Open fails if the process may open fewer than least (RLIMIT_NOFILE). It uses all if it can.
//
// System calls: those of ethtool and netlink.
func Descriptors(ifname string, o Options) (least, all int, err error) {
	queues, _, err := o.extent(ifname)
	if err != nil {
		return 0, 0, err
	}
	ifi, err := FindInterface(ifname)
	if err != nil {
		return 0, 0, err
	}
	now, err := route.ReadInterface(ifi.Index)
	if err != nil {
		return 0, 0, err
	}
	least = deviceDescriptors + sourcePortCount + queues*queueDescriptors + min(len(now.Addrs), MaxAddresses)
	return least, least + extraDescriptors, nil
}
