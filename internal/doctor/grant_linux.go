package doctor

import (
	"math"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
)

// Bounds of the MTU in bytes, as docs/DRIVERS.md has them.
const (
	// onePage is what a driver without multi-buffer carries with XDP: a page less the headroom of XDP,
	// the kernel's shared info, Ethernet header and a VLAN tag. Drivers differ: see knownNative.
	onePage = 3498
	// oneFrame is what fits into one frame of the memory that a socket shares with the driver.
	oneFrame = 3814
)

// knownNative are drivers whose bound was seen.
var knownNative = map[string]int{"igb": 3046, "vmxnet3": 3494}

// mostNative is the largest MTU of native mode where the driver takes no packets of several buffers, and
// whether it was seen.
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

// mostZeroCopy is the largest MTU of zero-copy mode.
func (x *exam) mostZeroCopy() int {
	if x.features.segments > 1 {
		return math.MaxInt
	}
	return oneFrame
}

// zeroCopy says whether the driver has zero-copy mode on this device, as far as the kernel tells.
func (x *exam) zeroCopy() bool { return x.features.has(featureZeroCopy) && !x.unmapped }

// virtioNet is a driver that announces zero-copy mode for devices that have none.
const virtioNet = "virtio_net"

// accessPlatform is VIRTIO_F_ACCESS_PLATFORM, the place of a bit.
const accessPlatform = 33

// virtioFeatures are those that driver and device have agreed on, a character each, the first for bit 0;
// empty where sysfs does not show this interface.
func virtioFeatures(a *netlink.LinkAttrs) string {
	dir := "/sys/class/net/" + a.Name
	if readLine(dir+"/ifindex") != strconv.Itoa(a.Index) {
		return "" // sysfs is that of another namespace
	}
	if _, err := os.Stat(dir + "/device/features"); err != nil {
		return ""
	}
	return readLine(dir + "/device/features")
}

// mapsDMA says whether a virtio device leaves addresses to the DMA API, as AF_XDP needs to share memory
// with it. A device that does not tell counts as one that does.
func mapsDMA(features string) bool {
	return len(features) <= accessPlatform || features[accessPlatform] == '1'
}
