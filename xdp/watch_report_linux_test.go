package xdp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// An MTU that is too small for open connections is harmful, and any other is not.
func TestWatchMTU(t *testing.T) {
	for mtu, want := range map[int]bool{576: true, smallestMTU - 1: true, smallestMTU: false, 9000: false} {
		w := &witness{heard: make(chan string, 1)}
		(&watch{d: &Device{mtu: 1500}, keeper: w}).mtuChanged(1500, mtu)
		if text := <-w.heard; strings.Contains(text, "are lost") != want {
			t.Errorf("%d: %q", mtu, text)
		}
	}
}

// Why an address is not served: only a port that is in use belongs to another program, and an address that has gone
// meanwhile is not reported.
func TestRefusedAddresses(t *testing.T) {
	at := netip.MustParseAddrPort("10.0.0.1:17473")
	for err, want := range map[error]string{
		os.NewSyscallError("bind", unix.EADDRINUSE):    "another program has its UDP port 17473",
		os.NewSyscallError("socket", unix.EMFILE):      "too many open files",
		os.NewSyscallError("bind", unix.EADDRNOTAVAIL): "",
	} {
		s := &served{}
		s.refuse(at, err)
		if got := strings.Join(s.refused, ""); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// A link-local address is served on an interface that has replaced another one of its name, less than a minute ago.
func TestLinkLocalAddressOfAReplacedInterface(t *testing.T) {
	l := newLab(t, 1500, 1)
	openDevice(t, l, lab.A, small()).Close()
	onSide(t, l, lab.A, func() error {
		own := netip.MustParsePrefix("fe80::73/64")
		if _, err := net.ResolveUDPAddr("udp", "[fe80::1%"+lab.Interface+"]:1"); err != nil { // package net keeps the index
			return err
		}
		if err := errors.Join(labtest.Delete(lab.Interface), labtest.AddReluctant(lab.Interface, "other")); err != nil {
			return err
		}
		if err := labtest.AddAddress(lab.Interface, own); err != nil {
			return err
		}
		ifi, err := FindInterface(lab.Interface)
		if err != nil {
			return err
		}
		g, err := openGuard(netip.AddrPortFrom(own.Addr(), DefaultPort), ifi.Index)
		if err != nil {
			return err
		}
		return g.close()
	})
}
