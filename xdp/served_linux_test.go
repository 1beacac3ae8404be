package xdp

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/bpf"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// The own address comes first. Addresses in use keep their places, and those beyond the limit are named.
func TestServedAddresses(t *testing.T) {
	prefixes := func(n int) (list []netip.Prefix) {
		for i := range n {
			list = append(list, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 16))
		}
		return list
	}
	local := netip.MustParseAddr("10.1.0.7")
	most := newServed(local, nil, prefixes(bpf.MaxAddresses))
	if len(most.addrs) != bpf.MaxAddresses || most.addrs[0] != local || len(most.missed) != 0 {
		t.Fatalf("%d addresses from %v, %d missed", len(most.addrs), most.addrs[0], len(most.missed))
	}
	newest := netip.MustParsePrefix("10.2.0.1/16")
	more := newServed(local, most.addrs, append([]netip.Prefix{newest}, prefixes(bpf.MaxAddresses)...))
	if more.owns(newest.Addr()) || len(more.missed) != 1 || more.missed[0] != newest.Addr() {
		t.Errorf("a new address displaces one in use: missed %v", more.missed)
	}
	fewer := newServed(local, more.addrs, append([]netip.Prefix{newest}, prefixes(3)...))
	if !fewer.owns(newest.Addr()) || !fewer.owns(local) || len(fewer.addrs) != 5 {
		t.Errorf("addresses %v", fewer.addrs)
	}
}

// A device receives packets to all addresses of its interface: to more than a few, and to one that is added later, within
// a second. It receives no packets to an address that was removed.
func TestAddressesAreFollowed(t *testing.T) {
	l := newLab(t, 1500, 1)
	extra := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 73, 0, byte(100 + i)}), 24)
	}
	for i := range 20 {
		onSide(t, l, lab.A, func() error { return labtest.AddAddress(lab.Interface, extra(i)) })
	}
	d := openDevice(t, l, lab.A, small())
	w := &witness{heard: make(chan string, 100), ended: make(chan error, 1)}
	d.Watch(w)
	s := d.sockets[0]
	for i := range 20 {
		knock(t, l, extra(i).Addr())
		if in := collect(t, s, 1); len(in) != 1 {
			t.Fatalf("%d packets to %v", len(in), extra(i))
		}
	}
	late := extra(30)
	start := time.Now()
	onSide(t, l, lab.A, func() error { return labtest.AddAddress(lab.Interface, late) })
	w.hears(t, fmt.Sprintf("%v was added, and is served", late.Addr()))
	if took := time.Since(start); took > time.Second {
		t.Errorf("an address was served %v after it was added", took)
	}
	knock(t, l, late.Addr())
	collect(t, s, 1)
	if !s.owns(late.Addr()) {
		t.Error("the sockets do not know the address")
	}
	onSide(t, l, lab.A, func() error { return labtest.RemoveAddress(lab.Interface, late) })
	w.hears(t, "was removed")
	if s.owns(late.Addr()) {
		t.Error("the sockets own a removed address")
	}
}

// knock sends a packet from the kernel of side B to the device's port at an address of side A.
func knock(t *testing.T, l *lab.Lab, to netip.Addr) {
	t.Helper()
	onSide(t, l, lab.B, func() error {
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, DefaultPort)))
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("knock"))
		return err
	})
}

// More addresses than a device can serve are reported at once.
func TestTooManyAddresses(t *testing.T) {
	l := newLab(t, 1500, 1)
	for i := range bpf.MaxAddresses + 3 {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 80, byte(i >> 8), byte(i)}), 32)
		onSide(t, l, lab.A, func() error { return labtest.AddAddress(lab.Interface, p) })
	}
	d := openDevice(t, l, lab.A, small())
	w := &witness{heard: make(chan string, 100), ended: make(chan error, 1)}
	d.Watch(w)
	w.hears(t, "are not served")
	last := netip.AddrFrom4([4]byte{10, 80, byte((bpf.MaxAddresses + 2) >> 8), byte((bpf.MaxAddresses + 2) & 0xff)})
	if s := d.served.now.Load(); len(s.addrs) != bpf.MaxAddresses || s.owns(last) {
		t.Errorf("%d addresses are served, %v among them: %t", len(s.addrs), last, s.owns(last))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	o := small()
	o.Addr = last // an address beyond the limit can be the device's own
	if d = openDevice(t, l, lab.A, o); !d.served.now.Load().owns(last) {
		t.Error("the device does not serve its own address")
	}
}

// An address that has failed duplicate address detection is never chosen, and the error names its state. A tentative
// address is awaited.
func TestAddressStates(t *testing.T) {
	l := newLab(t, 1500, 1)
	taken, good := netip.MustParsePrefix("fd80::5/64"), netip.MustParsePrefix("fd80::1/64")
	onSide(t, l, lab.A, func() error { return labtest.RemoveAddress(lab.Interface, netip.PrefixFrom(lab.A.Addr4(), 24)) })
	onSide(t, l, lab.A, func() error { return labtest.RemoveAddress(lab.Interface, netip.PrefixFrom(lab.A.Addr6(), 64)) })
	onSide(t, l, lab.B, func() error { return labtest.AddAddress(lab.Interface, taken) })
	add := func(p netip.Prefix) {
		onSide(t, l, lab.A, func() error { return labtest.AddDetected(lab.Interface, p) })
	}
	open := func(want netip.Addr) (addr netip.Addr, err error) {
		onSide(t, l, lab.A, func() error {
			o := small()
			o.Addr = want
			var d *Device
			if d, err = Open(lab.Interface, o); err == nil {
				addr = d.local
				return d.Close()
			}
			return nil
		})
		return addr, err
	}
	add(taken)
	if _, err := open(netip.Addr{}); err == nil || !strings.Contains(err.Error(), "failed duplicate address detection") {
		t.Errorf("a duplicate address alone: %v", err)
	}
	add(good)
	if got, err := open(netip.Addr{}); got != good.Addr() {
		t.Errorf("a tentative address: %v, %v", got, err)
	}
	if got, err := open(netip.Addr{}); got != good.Addr() {
		t.Errorf("beside a duplicate address: %v, %v", got, err)
	}
	if _, err := open(taken.Addr()); err == nil || !strings.Contains(err.Error(), "failed duplicate address detection") {
		t.Errorf("the duplicate address by name: %v", err)
	}
	onSide(t, l, lab.A, func() error {
		got, err := LocalAddr(lab.Interface)
		if got != good.Addr() {
			t.Errorf("LocalAddr: %v, %v", got, err)
		}
		return nil
	})
}
