package labtest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
)

// holder is the interface whose queue keeps the packets.
const holder = "hold0"

// Hold makes a side of a lab keep packets that arrive for an IPv4 address: they wait in a queue, and the kernel charges
// them to the socket of their sender. drop drops them and ends it. At the end of the test Hold calls drop, because the
// kernel cannot delete an interface while packets of its AF_XDP sockets wait.
func Hold(t testing.TB, l *lab.Lab, side lab.Side, to netip.Addr) (drop func()) {
	t.Helper()
	if err := l.Do(side, func() error { return hold(to) }); err != nil {
		t.Fatalf("labtest: hold packets: %v", err)
	}
	drop = sync.OnceFunc(func() {
		if err := l.Do(side, func() error { return Delete(holder) }); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(drop)
	return drop
}

func hold(to netip.Addr) error {
	return onLink(lab.Interface, func(l netlink.Link) error {
		queue := &netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: holder}}
		if err := netlink.LinkAdd(queue); err != nil {
			return fmt.Errorf("add %s: %w", holder, err)
		}
		if err := netlink.LinkSetUp(queue); err != nil {
			return fmt.Errorf("set up %s: %w", holder, err)
		}
		const rate, burst = 100, 3000 // bytes per second, bytes
		slow := &netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: queue.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)},
			Rate:       rate, Limit: 1 << 30, Buffer: netlink.Xmittime(rate, burst),
		}
		ingress := &netlink.Ingress{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_INGRESS, Handle: netlink.MakeHandle(0xffff, 0)},
		}
		for _, q := range []netlink.Qdisc{slow, ingress} {
			if err := netlink.QdiscAdd(q); err != nil {
				return fmt.Errorf("add queueing discipline %s: %w", q.Type(), err)
			}
		}
		const offDestination = 16
		err := netlink.FilterAdd(&netlink.U32{
			FilterAttrs: netlink.FilterAttrs{LinkIndex: l.Attrs().Index, Parent: ingress.Handle, Priority: 1, Protocol: unix.ETH_P_IP},
			Sel: &netlink.TcU32Sel{Flags: nl.TC_U32_TERMINAL, Nkeys: 1, Keys: []netlink.TcU32Key{
				{Mask: 1<<32 - 1, Val: binary.BigEndian.Uint32(to.AsSlice()), Off: offDestination},
			}},
			Actions: []netlink.Action{netlink.NewMirredAction(queue.Attrs().Index)},
		})
		if err != nil {
			return fmt.Errorf("redirect packets to %s: %w", holder, err)
		}
		return nil
	})
}
