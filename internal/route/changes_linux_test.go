package route

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// told waits for a change of the interface after which ok returns true.
func (w *world) told(what string, ok func(Interface) bool) {
	w.Helper()
	for limit := time.After(10 * time.Second); ; {
		select {
		case <-w.table.Changes():
			if ok(w.table.Interface()) {
				return
			}
		case <-limit:
			w.Fatalf("no change says: %s; the last state is %+v", what, w.table.Interface())
		}
	}
}

// Changes of the carrier, the MTU and the name are reported.
func TestChanges(t *testing.T) {
	w := newWorld(t)
	w.must(w.lab.SetUp(lab.B, false))
	w.told("no carrier", func(i Interface) bool { return i.Up && !i.Carrier })
	w.must(w.lab.SetUp(lab.B, true))
	w.told("carrier", func(i Interface) bool { return i.Carrier })
	w.must(w.nl[lab.A].LinkSetMTU(w.veth[lab.A], 1400))
	w.told("MTU", func(i Interface) bool { return i.MTU == 1400 })
	w.must(w.nl[lab.A].LinkSetName(w.veth[lab.A], "other"))
	w.told("name", func(i Interface) bool { return i.Name == "other" })
	w.must(w.nl[lab.A].LinkSetName(w.veth[lab.A], lab.Interface))
}

// The last state of an interface that leaves the namespace stays, with the reason why it is gone.
func TestGone(t *testing.T) {
	t.Run("deleted", func(t *testing.T) {
		w := newWorld(t)
		w.must(w.nl[lab.B].LinkDel(w.veth[lab.B]))
		w.told("deleted", func(i Interface) bool { return i.Gone == Deleted && !i.Up && i.Name == lab.Interface })
	})
	t.Run("moved", func(t *testing.T) {
		w, other := newWorld(t), labtest.New(t, lab.Options{})
		w.must(w.nl[lab.A].LinkSetName(w.veth[lab.A], "moved"))
		w.must(moveTo(other, w.nl[lab.A], w.veth[lab.A]))
		w.told("moved", func(i Interface) bool { return i.Gone == Moved && !i.Up })
	})
}

// moveTo moves an interface into the first namespace of a lab.
func moveTo(l *lab.Lab, nl *netlink.Handle, veth netlink.Link) error {
	return l.Do(lab.A, func() error {
		ns, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			return err
		}
		return errors.Join(nl.LinkSetNsFd(veth, int(ns.Fd())), ns.Close())
	})
}

// A router advertisement adds an address, which the kernel lists first. Permanent addresses precede it.
func TestPermanentAddressesComeFirst(t *testing.T) {
	w := newWorld(t)
	w.reportAddress()
	w.table.Refresh()
	addrs := w.table.Interface().Addrs
	added := netip.MustParsePrefix("fd99::1/64")
	if i, j := slices.Index(addrs, netip.PrefixFrom(lab.A.Addr6(), 64)), slices.Index(addrs, added); i < 0 || j < i {
		t.Errorf("addresses %v, want %v before %v", addrs, lab.A.Addr6(), added)
	}
}
