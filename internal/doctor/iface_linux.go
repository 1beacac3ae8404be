package doctor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/xdp"
)

func checkInterface(_ context.Context, x *exam) []Finding {
	if x.link != nil {
		return ok("%s: %s%s", x.name(), x.driverName(), address(x.link))
	}
	if _, err := netlink.LinkList(); err != nil {
		return x.interfacesUnread(err)
	}
	if x.ifname == "" {
		return failure(fmt.Sprintf("%v is not an address of this host", x.addr), "",
			"choose one of "+strings.Join(localAddresses(), ", "), "")
	}
	if name := route.NameOf(x.ifname); name != "" {
		return failure(fmt.Sprintf("%s is another name of %s, under which it cannot be opened", x.ifname, name), "",
			"use its name", fmt.Sprintf("datbench doctor --ia %s:%s", x.kind, name))
	}
	return failure(fmt.Sprintf("there is no interface %s", x.ifname), "",
		"choose one of "+strings.Join(interfaceNames(), ", "), "")
}

// interfacesUnread reports that the kernel does not list the interfaces to this process. A socket of kernel UDP does not
// need the list.
func (x *exam) interfacesUnread(err error) []Finding {
	f := failure("the interfaces of this host cannot be read: "+err.Error(), forbidders,
		"allow sockets of netlink (16) to the process, as docs/seccomp.json does", "")
	if x.kind == ianame.UDP && x.addr.IsValid() {
		f[0].Severity = Warning
	}
	return f
}

// driverName returns the name of the device's driver or, if it has none, the kind of the interface.
func (x *exam) driverName() string {
	switch {
	case x.driver != "":
		return "driver " + x.driver
	case x.link.Attrs().Flags&net.FlagLoopback != 0:
		return "the loopback device"
	}
	return "a driver without a name"
}

func address(l netlink.Link) string {
	if mac := l.Attrs().HardwareAddr; len(mac) > 0 {
		return ", MAC address " + mac.String()
	}
	return ""
}

func interfaceNames() (names []string) {
	links, _ := netlink.LinkList() // empty on an error
	for _, l := range links {
		names = append(names, l.Attrs().Name)
	}
	return names
}

func localAddresses() (all []string) {
	links, _ := netlink.LinkList() // empty on an error
	for _, l := range links {
		for _, a := range addresses(l) {
			if !a.IsLinkLocalUnicast() {
				all = append(all, a.String())
			}
		}
	}
	return all
}

func checkUp(_ context.Context, x *exam) []Finding {
	if isUp(x.link.Attrs()) {
		return ok("%s is up", x.name())
	}
	return failure(x.name()+" is down", "Nothing is sent or received.", "bring it up",
		as(fmt.Sprintf("ip link set dev %s up", x.name())))
}

func checkCarrier(_ context.Context, x *exam) []Finding {
	a := x.link.Attrs()
	switch {
	case !isUp(a):
		return nil // another check reports it
	case a.OperState != netlink.OperDown && a.OperState != netlink.OperLowerLayerDown:
		return ok("%s has carrier", x.name())
	case x.link.Type() == "veth":
		return failure(x.name()+" has no carrier: the other end of the veth pair is down", "Nothing is sent or received.",
			"bring the other end up, in its namespace: ip link set dev NAME up", "")
	}
	return failure(x.name()+" has no carrier", "Nothing is sent or received.", "plug the cable in, and bring the port of the switch or the other host up", "")
}

func checkAddress(_ context.Context, x *exam) []Finding {
	if f := x.unusable(); f != nil {
		return f
	}
	if x.serves() {
		return ok("%v is the adapter's address%s", x.address, others(len(x.addrs)))
	}
	family, example := "", "10.0.0.1/24"
	if x.Peer.Is6() {
		family, example = " IPv6", "fd00::1/64"
	} else if x.Peer.Is4() {
		family = " IPv4"
	}
	found, fix := fmt.Sprintf("%s has no%s address%s", x.name(), family, x.onlyLinkLocal()), "give it one, of the network that the peers are in, such as"
	command := as(fmt.Sprintf("ip address add %s dev %s", example, x.name()))
	if master := masterOf(x.link); master != "" {
		found += fmt.Sprintf(": it is a part of %s", master)
		fix, command = fmt.Sprintf("use %s instead, or take %s out of it and give it an address", master, x.name()), ""
	}
	return failure(found, "An adapter is known by an address of its interface.", fix, command)
}

// onlyLinkLocal says why the addresses that the interface has do not count; empty if it has none.
func (x *exam) onlyLinkLocal() string {
	if len(x.addrs) == 0 || x.Peer.Is4() || !x.addrs[0].IsLinkLocalUnicast() {
		return ""
	}
	return ", only a link-local one"
}

// unusable reports an address that the adapter needs and cannot use: its own, or the only one of the interface.
func (x *exam) unusable() []Finding {
	needs := func(a netip.Addr) bool {
		return a == x.addr.WithZone("") || !x.addr.IsValid() && !x.address.IsValid() && !a.IsLinkLocalUnicast()
	}
	for _, a := range x.iface.Duplicate {
		if needs(a) {
			return failure(fmt.Sprintf("%v has failed duplicate address detection: another host of the link has it", a),
				"The kernel neither sends nor receives with it.", "give one of the two another address", "")
		}
	}
	for _, a := range x.iface.Tentative {
		if needs(a) {
			f := failure(fmt.Sprintf("%v is tentative: duplicate address detection has not ended", a),
				fmt.Sprintf("Opening an adapter waits for up to %v, and then fails.", tentativeWait), "wait; it ends only while the interface has carrier", "")
			if x.explaining { // it has not waited
				f[0].Severity = Warning
			}
			return f
		}
	}
	return nil
}

func others(n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(", one of %d", n)
}

func masterOf(l netlink.Link) string {
	if l.Attrs().MasterIndex == 0 {
		return ""
	}
	master, err := netlink.LinkByIndex(l.Attrs().MasterIndex)
	if err != nil {
		return ""
	}
	return master.Attrs().Name
}

// checkLayer examines interfaces above and below this one.
func checkLayer(_ context.Context, x *exam) []Finding {
	if x.address.IsValid() {
		if fault, fix, err := xdp.LayerFault(x.link.Attrs().Index, x.address); err == nil && fault != "" {
			return failure(fault, "The adapter would open and receive nothing.", fix, "")
		}
	}
	if v, is := x.link.(*netlink.Vlan); is {
		parent := "another interface"
		if l, err := netlink.LinkByIndex(v.ParentIndex); err == nil {
			parent = l.Attrs().Name
		}
		return info("%s is VLAN %d of %s: packets come through the kernel's VLAN device, in generic mode", x.name(), v.VlanId, parent)
	}
	if master := masterOf(x.link); master != "" {
		return warning(fmt.Sprintf("%s is a part of %s", x.name(), master),
			"A program here sees packets before "+master+" does; an XDP program on "+master+" excludes one here.",
			"use an interface of its own where you can", "")
	}
	return nil
}

const (
	// leastMTU is what every path must carry if the interfaces at its ends do: packets of 1200 bytes, and IPv6 headers.
	leastMTU = 1280
	// openMTU is the smallest MTU of an interface with which an adapter opens: a connection needs 856 bytes in a packet,
	// and 28 are the headers of IPv4 and UDP.
	openMTU = 884
)

func checkMTU(_ context.Context, x *exam) []Finding {
	mtu := x.link.Attrs().MTU
	most, exact := x.mostNative()
	switch {
	case mtu < openMTU:
		return failure(fmt.Sprintf("MTU %d is too small", mtu), fmt.Sprintf("An adapter needs packets of %d bytes.", openMTU),
			"raise it, on every host and switch of this network", x.setMTU(1500))
	case mtu < leastMTU:
		return warning(fmt.Sprintf("MTU %d is small", mtu), fmt.Sprintf("There is no IPv6 below %d, and many small packets are slow.", leastMTU),
			"raise it, on every host and switch of this network", x.setMTU(1500))
	case x.kind == ianame.UDP:
		return ok("MTU %d", mtu)
	case mtu > most && !x.manyFrames():
		return x.tooLarge(mtu, most, exact)
	case mtu > x.mostZeroCopy() && x.zeroCopy():
		return x.notZeroCopy(mtu)
	}
	return ok("MTU %d", mtu)
}

func (x *exam) setMTU(mtu int) string {
	return as(fmt.Sprintf("ip link set dev %s mtu %d", x.name(), mtu))
}

// tooLarge returns the findings about an MTU that is too large for native mode.
func (x *exam) tooLarge(mtu, most int, exact bool) []Finding {
	about := "about "
	if exact {
		about = ""
	}
	f := warning(fmt.Sprintf("MTU %d is more than %s carries with native XDP, %s%d", mtu, x.driverName(), about, most),
		"Its driver takes no packets of several buffers: it refuses native mode, and generic mode is slow.",
		"lower it, on every host of this network", x.setMTU(most))
	if x.native() {
		f[0].Severity = Error
	}
	return f
}

// notZeroCopy returns the findings about an MTU that is too large for zero-copy mode, but not for native mode.
func (x *exam) notZeroCopy(mtu int) []Finding {
	f := warning(fmt.Sprintf("MTU %d is more than %s carries in zero-copy mode, %d", mtu, x.driverName(), x.mostZeroCopy()),
		"A packet has to fit into one frame there; copy mode takes several.",
		"lower it, on every host of this network, or be content with copy mode", x.setMTU(x.mostZeroCopy()))
	if x.mode == "zero-copy" {
		f[0].Severity = Error
	}
	return f
}

// manyFrames reports whether native mode supports packets larger than a page, as far as is known. It also returns true
// if native mode is not used.
func (x *exam) manyFrames() bool {
	switch {
	case x.mode == "generic" || x.features.known && !x.features.has(featureNative):
		return true
	case x.features.known:
		return x.features.has(featureRxSegments) && x.kernel.atLeast(frags)
	}
	return x.kernel.atLeast(frags)
}

func checkDriver(_ context.Context, x *exam) []Finding {
	f, name := x.features, x.driverName()
	switch {
	case x.unmapped && x.mode == "zero-copy":
		return failure(fmt.Sprintf("%s has no zero-copy mode on this device, which bypasses the DMA API", name), "Copy mode works, with one copy more.",
			"give the virtual machine's NIC iommu_platform (VIRTIO_F_ACCESS_PLATFORM: iommu_platform=on of qemu, driver iommu='on' of libvirt), or ask for copy",
			fmt.Sprintf("datbench doctor --ia xdp:%s,copy", x.ifname))
	case !f.known:
		return info("what %s grants is known when it is tried: --try (Linux 6.3 and later tell before)", name)
	case !f.has(featureNative) && x.native():
		return failure(fmt.Sprintf("%s has no native XDP, so no %s mode", name, x.mode), "Generic mode works with any driver, slower.",
			"ask for generic mode", fmt.Sprintf("datbench doctor --ia xdp:%s,generic", x.ifname))
	case !f.has(featureNative):
		return info("%s has no native XDP: generic mode, slower", name)
	case !f.has(featureZeroCopy) && x.mode == "zero-copy":
		return failure(fmt.Sprintf("%s has no zero-copy mode as it is set up now", name), "Copy mode works, with one copy more.",
			"leave the mode out, or ask for copy", fmt.Sprintf("datbench doctor --ia xdp:%s,copy", x.ifname))
	case x.stray && x.mode == "zero-copy":
		return failure(fmt.Sprintf("%s is a loaded module, and as such sends frames with a wrong header in zero-copy mode", name), "Copy mode works, with one copy more.",
			"leave the mode out, or ask for copy; a kernel that has the driver in its image can do zero-copy", fmt.Sprintf("datbench doctor --ia xdp:%s,copy", x.ifname))
	}
	return ok("%s has native XDP%s", name, x.more())
}

func (x *exam) more() string {
	f, s := x.features, ", in copy mode only"
	switch {
	case x.zeroCopy():
		s = ", zero-copy"
	case f.has(featureZeroCopy) && !x.unmapped:
		s += ", for as a loaded module it sends frames with a wrong header in zero-copy mode"
	case f.has(featureZeroCopy):
		s += ", for the virtual machine's NIC has no iommu_platform"
	}
	if f.has(featureRxSegments) {
		s += ", packets of several buffers"
	}
	return s
}

// expected returns the mode that will be granted.
func (x *exam) expected() string {
	f := x.features
	switch {
	case x.granted != "":
		return x.granted + " mode"
	case x.mode == "zero-copy" && !f.known:
		return x.mode + " mode if the driver grants it, which --try shows,"
	case x.mode != "" && x.mode != "auto":
		return x.mode + " mode"
	case !f.known:
		return "the best mode that the driver grants"
	case !f.has(featureNative), !x.manyFrames() && x.beyondNative():
		return "generic mode"
	case x.zeroCopy() && x.link.Attrs().MTU <= x.mostZeroCopy():
		return "zero-copy mode"
	}
	return "native copy mode"
}
