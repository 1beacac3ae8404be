package labtest

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
)

// Wire connects the two ends of a lab and drops frames of all kinds at random. Both ends are veths as in any lab, so
// AF_XDP works on them. Their peers are in a third namespace, where two BPF programs at tc ingress forward frames
// between them. Any goroutine may call the methods.
type Wire struct {
	ns       netns.NsHandle
	nl       *netlink.Handle
	middle   [2]netlink.Link // devices towards each side
	lost     *ebpf.Map
	programs []*ebpf.Program
	links    []link.Link
}

// NewLossy creates a lab whose wire drops a fraction (0 to 1) of the frames in each direction, including ARP and TCP.
// The lab is closed at the end of the test. [lab.Lab.SetMTU] does not change the devices in the third namespace.
// NewLossy skips the test like [RequireRoot], and on kernels before 6.6, which have no bpf_link for tc.
//
// System calls: bpf(2), unshare(2), setns(2).
func NewLossy(t testing.TB, o lab.Options, part float64) (*lab.Lab, *Wire) {
	t.Helper()
	l := New(t, o)
	requireKernel(t, 6, 6, "for bpf_link at tc")
	w := &Wire{ns: netns.None()}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []func() error{
		func() error { return w.open(l) },
		func() error { return w.insert(l) },
		func() error { return w.join(part) },
		func() error { return l.SetUp(lab.B, true) }, // SetUp waits for the carrier of both ends
		w.awaitCarrier,
	} {
		if err := step(); err != nil {
			t.Fatalf("labtest: wire: %v", err)
		}
	}
	return l, w
}

// Lost returns the number of frames dropped so far on the way to a side.
func (w *Wire) Lost(to lab.Side) (frames uint64, err error) {
	err = w.lost.Lookup(uint32(to), &frames)
	return frames, err
}

// open creates the namespace in the middle.
func (w *Wire) open(l *lab.Lab) error {
	err := l.Do(lab.A, func() (err error) { // Do restores the namespace of the thread
		w.ns, err = netns.New()
		return err
	})
	if err != nil {
		return err
	}
	w.nl, err = netlink.NewHandleAt(w.ns, unix.NETLINK_ROUTE)
	return err
}

// insert moves side B's half of the pair to the middle, and gives B one half of another pair.
func (w *Wire) insert(l *lab.Lab) error {
	var b netns.NsHandle
	err := l.Do(lab.B, func() error {
		old, err := netlink.LinkByName(lab.Interface)
		if err != nil {
			return err
		}
		w.middle[lab.A] = old
		if err := netlink.LinkSetNsFd(old, int(w.ns)); err != nil {
			return fmt.Errorf("move %s: %w", lab.Interface, err)
		}
		b, err = netns.Get()
		return err
	})
	if err != nil {
		return err
	}
	err = w.addPair(int(b))
	if err := errors.Join(err, b.Close()); err != nil {
		return err
	}
	return l.Do(lab.B, func() error { return address(lab.B) })
}

// addPair creates a second pair like A's, from the middle to the namespace of B.
func (w *Wire) addPair(b int) error {
	const toB = "to_b"
	like := w.middle[lab.A].Attrs()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = toB, like.MTU
	attrs.NumTxQueues, attrs.NumRxQueues = like.NumTxQueues, like.NumRxQueues
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerHardwareAddr, pair.PeerNamespace = lab.Interface, lab.B.MAC(), netlink.NsFd(b)
	pair.PeerMTU = uint32(like.MTU)
	pair.PeerNumTxQueues, pair.PeerNumRxQueues = uint32(like.NumTxQueues), uint32(like.NumRxQueues)
	if err := w.nl.LinkAdd(pair); err != nil {
		return fmt.Errorf("create a veth pair: %w", err)
	}
	for s, name := range []string{lab.Interface, toB} {
		dev, err := w.nl.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find %s: %w", name, err)
		}
		w.middle[s] = dev
		if err := errors.Join(w.nl.LinkSetIP6AddrGenMode(dev, addrGenNone), w.nl.LinkSetUp(dev)); err != nil {
			return fmt.Errorf("bring %s up: %w", name, err)
		}
	}
	return nil
}

// addrGenNone is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h. The interface then has no link-local address and sends
// nothing by itself.
const addrGenNone = 1

// address adds the addresses of a side to the interface in the calling thread's namespace.
func address(s lab.Side) error {
	dev, err := netlink.LinkByName(lab.Interface)
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetIP6AddrGenMode(dev, addrGenNone),
		netlink.AddrAdd(dev, &netlink.Addr{IPNet: &net.IPNet{IP: s.Addr4().AsSlice(), Mask: net.CIDRMask(24, 32)}}),
		netlink.AddrAdd(dev, &netlink.Addr{IPNet: &net.IPNet{IP: s.Addr6().AsSlice(), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD}))
}

// awaitCarrier waits until the devices in the middle can send.
func (w *Wire) awaitCarrier() error {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		ready := 0
		for _, dev := range w.middle {
			now, err := w.nl.LinkByIndex(dev.Attrs().Index)
			if err != nil {
				return err
			}
			if now.Attrs().OperState == netlink.OperUp {
				ready++
			}
		}
		if ready == len(w.middle) {
			return nil
		}
	}
	return errors.New("no carrier in the middle")
}

// close removes the devices in the middle, and with them the interfaces of the ends.
func (w *Wire) close() error {
	var errs []error
	for _, l := range w.links {
		errs = append(errs, l.Close())
	}
	for _, p := range w.programs {
		errs = append(errs, p.Close())
	}
	if w.lost != nil {
		errs = append(errs, w.lost.Close())
	}
	if w.nl != nil {
		for _, dev := range w.middle {
			if dev != nil {
				errs = append(errs, w.nl.LinkDel(dev))
			}
		}
		w.nl.Close()
	}
	if w.ns.IsOpen() {
		errs = append(errs, w.ns.Close())
	}
	return errors.Join(errs...)
}
