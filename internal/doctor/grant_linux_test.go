package doctor

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/ianame"
)

// nic returns an exam of an interface with this driver.
func nic(mode, driver string, mtu int, f xdpFeatures) *exam {
	x := &exam{Target: Target{kind: ianame.XDP, ifname: "eth0", mode: mode}}
	x.link = &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "eth0", MTU: mtu}}
	x.driver, x.features, x.kernel = driver, f, version{7, 3}
	return x
}

// TestMapsDMA: mapsDMA understands the feature string of a virtio device in sysfs.
func TestMapsDMA(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	for features, want := range map[string]bool{
		"": true, zeros: false, zeros[:accessPlatform] + "1" + zeros[accessPlatform+1:]: true, zeros[:20]: true,
	} {
		if got := mapsDMA(features); got != want {
			t.Errorf("%q: got %v, want %v", features, got, want)
		}
	}
}

// TestGrant: doctor promises zero-copy and native mode only if the driver was measured to grant them.
func TestGrant(t *testing.T) {
	all := xdpFeatures{known: true, bits: featureNative | featureZeroCopy}
	many := xdpFeatures{known: true, bits: featureNative | featureZeroCopy | featureRxSegments, segments: 1}
	for _, tt := range []struct {
		name, mode, driver string
		mtu                int
		features           xdpFeatures
		fault              string
		check              func(*exam) []Finding
		want               Severity
		found, verdict     string
	}{
		{"virtio with iommu_platform", "", "virtio_net", 1500, many, "", driverOf, OK, "zero-copy", "in zero-copy mode"},
		{"virtio without", "", "virtio_net", 1500, many, "unmapped", driverOf, OK, "in copy mode only, for the virtual machine's NIC has no iommu_platform", "in native copy mode"},
		{"virtio without, asked", "zero-copy", "virtio_net", 1500, many, "unmapped", driverOf, Error, "no zero-copy mode on this device", ""},
		{"virtio as a module", "", "virtio_net", 1500, many, "stray", driverOf, OK, "in copy mode only, for as a loaded module", "in native copy mode"},
		{"virtio as a module, asked", "zero-copy", "virtio_net", 1500, many, "stray", driverOf, Error, "frames with a wrong header", ""},
		{"virtio at jumbo MTU", "", "virtio_net", 9000, many, "", mtuOf, Warning, "zero-copy mode, 3814", "in native copy mode"},
		{"virtio at jumbo MTU, asked", "zero-copy", "virtio_net", 9000, many, "", mtuOf, Error, "zero-copy mode, 3814", ""},
		{"virtio at its bound", "zero-copy", "virtio_net", 3814, many, "", mtuOf, OK, "MTU 3814", "in zero-copy mode"},
		{"igb at its bound", "", "igb", 3046, all, "", mtuOf, OK, "MTU 3046", "in zero-copy mode"},
		{"igb above", "", "igb", 3100, all, "", mtuOf, Warning, "MTU 3100 is more than driver igb carries with native XDP, 3046", "in generic mode"},
		{"igb above, asked", "copy", "igb", 3100, all, "", mtuOf, Error, "3046", ""},
		{"unknown driver", "", "other", 3499, all, "", mtuOf, Warning, "about 3498", "in generic mode"},
		{"old kernel", "zero-copy", "igb", 1500, xdpFeatures{}, "", driverOf, Info, "is known when it is tried", "in zero-copy mode if the driver grants it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := nic(tt.mode, tt.driver, tt.mtu, tt.features)
			x.unmapped, x.stray = tt.fault == "unmapped", tt.fault == "stray"
			got := tt.check(x)
			if severityOf(got) != tt.want || !strings.Contains(got[0].Found, tt.found) {
				t.Errorf("got %+v, want %v, %q", got, tt.want, tt.found)
			}
			if verdict := x.verdict(); !strings.Contains(verdict, tt.verdict) {
				t.Errorf("got %q, want %q", verdict, tt.verdict)
			}
		})
	}
}

func driverOf(x *exam) []Finding { return checkDriver(context.Background(), x) }
func mtuOf(x *exam) []Finding    { return checkMTU(context.Background(), x) }

// TestOtherTrafficKinds: the finding about other traffic depends on the kind of interface and on the mode. There is none if
// no XDP program will be attached.
func TestOtherTrafficKinds(t *testing.T) {
	native := xdpFeatures{known: true, bits: featureNative}
	many := xdpFeatures{known: true, bits: featureNative | featureZeroCopy | featureRxSegments, segments: 1}
	for _, tt := range []struct {
		name, mode, driver string
		features           xdpFeatures
		change             func(*exam)
		found              string
	}{
		{"veth", "", "veth", many, nil, "segmentation offload off at the other end of the veth pair"},
		{"veth, generic", "generic", "veth", many, nil, "in generic mode"},
		{"no native XDP", "", "e1000e", xdpFeatures{known: true}, nil, "in generic mode"},
		{"one page", "", "igb", native, nil, "driver igb carries an MTU up to 3046 and merges no packets"},
		{"one page, not measured", "", "other", native, nil, "driver other carries an MTU up to about 3498 and"},
		{"several buffers", "", "virtio_net", many, nil, "any MTU in copy mode, up to 3814 in zero-copy mode, and"},
		{"tried", "", "other", native, func(x *exam) { x.granted, x.lost = "copy", []string{"rx-lro"} }, "merges no packets that arrive (LRO, GRO_HW); while it was open these offloads were off: rx-lro"},
		{"generic was granted", "", "veth", many, func(x *exam) { x.granted = "generic" }, "in generic mode"},
		{"stopped", "", "veth", many, func(x *exam) { x.stopped = "down" }, ""},
		{"only UDP", "", "veth", many, func(x *exam) { x.fallback = "no AF_XDP" }, ""},
	} {
		x := nic(tt.mode, tt.driver, 1500, tt.features)
		if tt.change != nil {
			tt.change(x)
		}
		got := checkTraffic(t.Context(), x)
		switch {
		case tt.found == "" && len(got) > 0:
			t.Errorf("%s: got %+v, want nothing", tt.name, got)
		case tt.found != "" && (severityOf(got) != Info || !strings.Contains(got[0].Found, tt.found) || got[0].Means == ""):
			t.Errorf("%s: got %+v, want %q", tt.name, got, tt.found)
		}
	}
}

// TestShare: the share beside TCP is told of NICs only.
func TestShare(t *testing.T) {
	x := nic("", "ice", 1500, xdpFeatures{})
	if got := checkShare(t.Context(), x); severityOf(got) != Info || !strings.Contains(got[0].Fix, "docs/LINKS.md") {
		t.Errorf("a NIC: got %+v", got)
	}
	x.link = &netlink.Veth{}
	if got := checkShare(t.Context(), x); got != nil {
		t.Errorf("a veth: got %+v", got)
	}
}

func TestMissing(t *testing.T) {
	if got := missing([]string{"rx-lro", "tx-gso", "rx-gro-hw"}, []string{"tx-gso", "rx-gro"}); !slices.Equal(got, []string{"rx-gro-hw", "rx-lro"}) {
		t.Errorf("got %v", got)
	}
}

// TestGrows: virtio_net adds queues if there is room for one per processor. An adapter cannot use these queues.
func TestGrows(t *testing.T) {
	n := uint32(processors())
	if n == 0 {
		t.Skip("the kernel does not say how many processors there can be")
	}
	for _, tt := range []struct {
		driver, mode   string
		combined, most uint32
		want           string
	}{
		{"virtio_net", "", 1, n + 1, "ethtool -L eth0 combined 2"},
		{"virtio_net", "copy", 2, n + 3, "ethtool -L eth0 combined 4"},
		{"virtio_net", "", 2, n + 1, ""},
		{"virtio_net", "generic", 1, n + 1, ""},
		{"ice", "", 1, n + 1, ""},
	} {
		x := nic(tt.mode, tt.driver, 1500, xdpFeatures{})
		x.channels = ethtool.Channels{CombinedCount: tt.combined, MaxCombined: tt.most}
		var command string
		if x.grows() > 0 {
			command = checkQueues(t.Context(), x)[0].Command
		}
		if command, _ = strings.CutPrefix(command, "sudo "); command != tt.want {
			t.Errorf("%+v: got %q", tt, command)
		}
	}
}
