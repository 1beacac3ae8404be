package route

import (
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
)

// The addresses of a host change while a Table reads them, so the kernel reports an inconsistent dump. The Table must
// neither fail nor lose an address of its interface.
func TestAddressesChangeDuringDump(t *testing.T) {
	w := newWorld(t)
	add := func(i int) *netlink.Addr {
		return &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 99, byte(i>>8), byte(i)).To4(), Mask: net.CIDRMask(32, 32)}}
	}
	lo, err := w.nl[lab.A].LinkByName("lo")
	w.must(err)
	for i := range 1000 { // more than one message of the dump can hold
		w.must(w.nl[lab.A].AddrAdd(lo, add(i)))
	}
	var toggler *netlink.Handle
	w.on(lab.A, func() error {
		toggler, err = netlink.NewHandle()
		return err
	})
	defer toggler.Close()
	stop := make(chan struct{})
	var toggling sync.WaitGroup
	toggling.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = toggler.AddrAdd(lo, add(2000)) // the change matters, not its result
			_ = toggler.AddrDel(lo, add(2000))
		}
	})
	interrupted := 0
	for i := 0; interrupted < 5 && i < 100_000; i++ {
		if _, err := w.nl[lab.A].AddrList(w.veth[lab.A], netlink.FAMILY_ALL); errors.Is(err, netlink.ErrDumpInterrupted) {
			interrupted++
		}
		if err := w.table.readInterface(false); err != nil {
			t.Fatalf("after %d interrupted dumps: %v", interrupted, err)
		}
		if n := len(w.table.Interface().Addrs); n != 2 {
			t.Fatalf("after %d interrupted dumps: %d addresses, want 2", interrupted, n)
		}
	}
	close(stop)
	toggling.Wait()
	if interrupted == 0 {
		t.Error("no dump was interrupted: the test tests nothing")
	}
}
