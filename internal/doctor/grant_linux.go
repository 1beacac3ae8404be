package doctor

import (
	"math"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
)

// Limits of the MTU in bytes, see docs/DRIVERS.md.
const (
	// onePage is the largest MTU of a driver without multi-buffer XDP: a page minus XDP's headroom, the kernel's
	// skb_shared_info, the Ethernet header and a VLAN tag. Some drivers have a smaller limit, see knownNative.
	onePage = 3498
	// oneFrame is the largest MTU whose packets fit into one frame of a UMEM.
	oneFrame = 3814
)

// knownNative are the measured limits of some drivers.
var knownNative = map[string]int{"igb": 3046, "vmxnet3": 3494}

// mostNative returns the largest MTU of native mode without multi-buffer XDP. exact means that the limit was measured
// for this driver.
func (x *exam) mostNative() (mtu int, exact bool) {
	if mtu, exact = knownNative[x.driver]; !exact {
		mtu = onePage
	}
	return mtu, exact
}

func (x *exam) beyondNative() bool {
	most, _ := x.mostNative()
	return x.link.Attrs().MTU > most
}

// mostZeroCopy returns the largest MTU of zero-copy mode.
func (x *exam) mostZeroCopy() int {
	if x.features.segments > 1 {
		return math.MaxInt
	}
	return oneFrame
}

// zeroCopy reports whether the driver supports zero-copy mode on this device, as far as the kernel reports it.
func (x *exam) zeroCopy() bool { return x.features.has(featureZeroCopy) && !x.unmapped && !x.stray }

// accessPlatform is the bit number of VIRTIO_F_ACCESS_PLATFORM.
const accessPlatform = 33

// virtioFeatures returns the features that driver and device have negotiated. The string has one character per bit, bit
// 0 first; it is "" if sysfs does not show this interface.
func virtioFeatures(a *netlink.LinkAttrs) string {
	dir := "/sys/class/net/" + a.Name
	if readLine(dir+"/ifindex") != strconv.Itoa(a.Index) {
		return "" // sysfs shows another namespace
	}
	if _, err := os.Stat(dir + "/device/features"); err != nil {
		return ""
	}
	return readLine(dir + "/device/features")
}

// mapsDMA reports whether a virtio device uses the DMA API, which AF_XDP needs to share memory with the device. The driver
// announces zero-copy mode for other devices too. If the features are unknown, mapsDMA returns true.
func mapsDMA(features string) bool {
	return len(features) <= accessPlatform || features[accessPlatform] == '1'
}
