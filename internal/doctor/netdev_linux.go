package doctor

import (
	"encoding/binary"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// xdpFeatures has the XDP features that a driver reports (NETDEV_A_DEV_XDP_FEATURES). known means Linux 6.3 or later.
type xdpFeatures struct {
	known bool
	bits  uint64
	// segments is the largest number of buffers per packet in zero-copy mode; 0 if the kernel does not report it.
	segments uint32
}

// Of linux/netdev.h.
const (
	netdevCmdDevGet      = 1
	netdevADevIfindex    = 1
	netdevADevFeatures   = 3
	netdevADevSegments   = 4
	netdevVersion        = 1
	featureBasic         = 1 << 0
	featureRedirect      = 1 << 1
	featureZeroCopy      = 1 << 3
	featureRxSegments    = 1 << 5
	featureNative        = featureBasic | featureRedirect
	netdevFeatureValueSz = 8
	netdevSegmentValueSz = 4
)

func (f xdpFeatures) has(bits uint64) bool { return f.bits&bits == bits }

// featuresOf returns the XDP features of an interface.
//
// System calls: generic netlink, CTRL_CMD_GETFAMILY and NETDEV_CMD_DEV_GET.
func featuresOf(ifindex int) (f xdpFeatures) {
	family, err := netlink.GenlFamilyGet("netdev")
	if err != nil {
		return f
	}
	req := nl.NewNetlinkRequest(int(family.ID), 0)
	// nl.Genlmsg is not used, because it does not clear the reserved half of the header.
	req.AddRawData(append([]byte{netdevCmdDevGet, netdevVersion, 0, 0},
		nl.NewRtAttr(netdevADevIfindex, nl.Uint32Attr(uint32(ifindex))).Serialize()...))
	answers, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil || len(answers) == 0 || len(answers[0]) < nl.SizeofGenlmsg {
		return f
	}
	attrs, err := nl.ParseRouteAttr(answers[0][nl.SizeofGenlmsg:])
	if err != nil {
		return f
	}
	for _, a := range attrs {
		switch {
		case a.Attr.Type == netdevADevFeatures && len(a.Value) >= netdevFeatureValueSz:
			f.known, f.bits = true, binary.NativeEndian.Uint64(a.Value)
		case a.Attr.Type == netdevADevSegments && len(a.Value) >= netdevSegmentValueSz:
			f.segments = binary.NativeEndian.Uint32(a.Value)
		}
	}
	return f
}
