package mesh

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// Mesh is a network of several hosts. Any goroutine may call its methods, but Close only after all others.
type Mesh struct {
	labs  []*lab.Lab  // host i is side A of labs[i]; the bridge is on side B of labs[0]
	parts []*ebpf.Map // of each port: destination host to lost part of the frames, as a 32-bit fraction
	// closers free what the mesh has opened, the last one first.
	closers []func() error
}

const bridge = "bridge"

func port(host int) string { return fmt.Sprintf("port%d", host) }

// Open creates a network. It needs CAP_SYS_ADMIN and CAP_NET_ADMIN. On kernels before 6.6, which have no bpf_link for
// tc, the error is ebpf.ErrNotSupported.
func Open(hosts int) (*Mesh, error) {
	m := &Mesh{}
	for range hosts {
		l, err := lab.New(lab.Options{})
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.labs = append(m.labs, l)
		m.closers = append(m.closers, l.Close)
	}
	if err := m.connect(); err != nil {
		return nil, errors.Join(fmt.Errorf("mesh: %w", err), m.Close())
	}
	return m, nil
}

// Close deletes the network.
func (m *Mesh) Close() error {
	var errs []error
	for _, f := range slices.Backward(m.closers) {
		errs = append(errs, f())
	}
	m.closers = nil
	return errors.Join(errs...)
}

// New creates a network that is closed at the end of the test. It skips the test without root, and on kernels that do
// not support it.
func New(t testing.TB, hosts int) *Mesh {
	t.Helper()
	labtest.RequireRoot(t)
	m, err := Open(hosts)
	if errors.Is(err, ebpf.ErrNotSupported) {
		t.Skipf("needs Linux 6.6 or later for bpf_link at tc: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// Addr returns the address of a host.
func (m *Mesh) Addr(host int) netip.Addr { return netip.AddrFrom4([4]byte{10, 74, 0, byte(host + 1)}) }

// mac returns the Ethernet address of a host. Its last byte is the key of the host in parts.
func mac(host int) net.HardwareAddr { return net.HardwareAddr{2, 0x74, 0, 0, 0, byte(host + 1)} }

// Start starts cmd on a host. The kernel kills the child when this process dies.
func (m *Mesh) Start(host int, cmd *exec.Cmd) (*lab.Child, error) {
	return m.labs[host].Start(lab.A, cmd)
}

// Do runs fn in the namespace of a host.
func (m *Mesh) Do(host int, fn func() error) error { return m.labs[host].Do(lab.A, fn) }

// SetLoss drops a part (0 to 1) of the frames that one host sends to another. It does not affect broadcasts.
func (m *Mesh) SetLoss(from, to int, part float64) error {
	return m.parts[from].Put(uint32(to+1), uint64(part*(1<<32)))
}

// SetLossAll drops a part of the frames between all hosts.
func (m *Mesh) SetLossAll(part float64) error {
	var errs []error
	for from := range m.labs {
		for to := range m.labs {
			errs = append(errs, m.SetLoss(from, to, part))
		}
	}
	return errors.Join(errs...)
}

// connect moves the other end of each host's veth to the bridge.
func (m *Mesh) connect() error {
	middle := m.labs[0]
	for i, l := range m.labs {
		err := l.Do(lab.B, func() error {
			if err := down(lab.Interface); err != nil {
				return err
			}
			if err := labtest.Rename(lab.Interface, port(i)); err != nil || i == 0 {
				return err
			}
			return labtest.Move(port(i), middle, lab.B)
		})
		if err := errors.Join(err, l.Do(lab.A, func() error { return m.address(i) })); err != nil {
			return err
		}
	}
	return middle.Do(lab.B, func() error {
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}
		if err := errors.Join(netlink.LinkAdd(br), up(bridge)); err != nil {
			return err
		}
		// Otherwise the bridge would live as long as its namespace.
		m.closers = append(m.closers, func() error { return middle.Do(lab.B, func() error { return netlink.LinkDel(br) }) })
		for i := range m.labs {
			if err := m.plug(br, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// address replaces the addresses that the interface of every lab has.
func (m *Mesh) address(host int) error {
	return errors.Join(
		labtest.RemoveAddress(lab.Interface, netip.PrefixFrom(lab.A.Addr4(), 24)),
		labtest.RemoveAddress(lab.Interface, netip.PrefixFrom(lab.A.Addr6(), 64)),
		labtest.SetMAC(lab.Interface, mac(host)),
		labtest.AddAddress(lab.Interface, netip.PrefixFrom(m.Addr(host), 24)))
}

// plug makes an interface a port of the bridge.
func (m *Mesh) plug(br *netlink.Bridge, host int) error {
	dev, err := netlink.LinkByName(port(host))
	if err != nil {
		return err
	}
	if err := m.attach(dev.Attrs().Index); err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetMaster(dev, br), netlink.LinkSetUp(dev))
}

func up(name string) error {
	dev, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(dev)
}

func down(name string) error {
	dev, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetDown(dev)
}
