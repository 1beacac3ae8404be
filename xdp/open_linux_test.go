package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/bpf"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

func TestOpenErrors(t *testing.T) {
	l := newLab(t, 1500, 1)
	onSide(t, l, lab.A, func() error {
		o := small()
		check := func(what string, err, is error, words ...string) {
			t.Helper()
			if !errors.Is(err, is) {
				t.Errorf("%s: %v, want %v", what, err, is)
				return
			}
			for _, w := range words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %q does not mention %q", what, err, w)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: more than one line: %q", what, err)
			}
		}
		_, err := Open("eth77", o)
		check("unknown interface", err, link.ErrUnsupported, lab.Interface, "eth77")

		o.Mode = ZeroCopy
		_, err = Open(lab.Interface, o)
		check("zero copy on veth", err, link.ErrUnsupported, "zero-copy")

		o = small()
		o.Addr = netip.MustParseAddr("192.0.2.1")
		_, err = Open(lab.Interface, o)
		check("foreign address", err, link.ErrUnsupported, lab.A.Addr4().String())

		o = small()
		o.Queues = 3
		_, err = Open(lab.Interface, o)
		check("too many queues", err, link.ErrUnsupported, "1 receive queue")

		o = small()
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(lab.A.Addr4(), o.Port)))
		if err != nil {
			return err
		}
		_, err = Open(lab.Interface, o)
		check("port in use", err, link.ErrBusy, "port=", "17473")
		if err := c.Close(); err != nil {
			return err
		}

		d, err := Open(lab.Interface, o)
		if err != nil {
			return err
		}
		second := o
		second.Port++
		for _, o := range []Options{o, second} { // another port does not help, so no error may advise it
			_, err = Open(lab.Interface, o)
			check("interface in use", err, link.ErrBusy, "datxdp_steer", "udp:")
			if strings.Contains(err.Error(), "with the option port=") {
				t.Errorf("advises a port: %v", err)
			}
		}
		return d.Close()
	})
}

func TestOptions(t *testing.T) {
	o := Options{Mode: "fast", Queues: -1, FrameSize: 1000, RxRing: 3, TxRing: 64, FillRing: 64, CompletionRing: 32, Frames: 100, SendBuffer: -1}
	_, err := Open("lo", o)
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range []string{"port", "fast", "queues -1", "frame size 1000", "rx ring 3", "completion ring 32", "frames 100", "send buffer"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v: does not mention %q", err, word)
		}
	}
	o = DefaultOptions()
	if err := o.validate(); err != nil {
		t.Error(err)
	}
}

// An XDP program of another owner is named in the error and not changed.
func TestForeignProgram(t *testing.T) {
	l := newLab(t, 1500, 1)
	onSide(t, l, lab.A, func() error {
		if _, err := attachProgram(t, false); err != nil {
			return err
		}
		before := programOn(t, lab.Interface)
		_, err := Open(lab.Interface, small())
		if !errors.Is(err, bpf.ErrForeign) || !errors.Is(err, link.ErrBusy) {
			t.Errorf("%v, want a foreign program", err)
		}
		if now := programOn(t, lab.Interface); now != before || now == 0 {
			t.Errorf("program %d on the interface, was %d", now, before)
		}
		return nil
	})
}

// programOn returns the ID of the XDP program on an interface; 0 if there is none.
func programOn(t *testing.T, name string) uint32 {
	t.Helper()
	id, err := labtest.ProgramOn(name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Without privilege, the error names the capabilities that are needed.
func TestNoPrivilege(t *testing.T) {
	err := explainAttach("eth0", 1500, fmt.Errorf("bpf: attach: %w", bpf.ErrPrivilege))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_RAW") {
		t.Errorf("%v", err)
	}
}

// If a mode is not granted, the error mentions the MTU only if the MTU may be the reason.
func TestModeNotGranted(t *testing.T) {
	for mtu, want := range map[int]bool{1400: false, 1500: false, 3000: true, 9000: true} {
		err := explainBind(ZeroCopy, mtu, unix.EOPNOTSUPP)
		if got := strings.Contains(err.Error(), "MTU"); got != want || !errors.Is(err, link.ErrUnsupported) {
			t.Errorf("MTU %d: %v", mtu, err)
		}
	}
}

// If the driver refuses the program, the error quotes the driver. It mentions the MTU only if the MTU may be the
// reason.
func TestProgramRefused(t *testing.T) {
	driver := fmt.Errorf("bpf: attach to igb in native mode: the buffers are small: %w", bpf.ErrRefused)
	for mtu, want := range map[int]bool{1500: false, 3100: true} {
		err := explainAttach("igb", mtu, driver)
		if got := strings.Contains(err.Error(), "ip link set dev igb mtu 1500"); got != want || !errors.Is(err, link.ErrUnsupported) ||
			!strings.Contains(err.Error(), "the buffers are small") || !strings.Contains(err.Error(), "generic") {
			t.Errorf("MTU %d: %v", mtu, err)
		}
	}
}

// An interface may have no receive queue: a tap has none until a program serves it.
func TestOpenWithoutQueues(t *testing.T) {
	l := newLab(t, 1500, 1)
	onSide(t, l, lab.A, func() error {
		d, err := open(lab.Interface, &fakeNIC{first: channels{maxCombined: 1}}, small())
		if d != nil || !errors.Is(err, link.ErrUnsupported) || !strings.Contains(err.Error(), "no receive queue") {
			t.Errorf("%v, %v; want an error that names the queues", d, err)
		}
		return nil
	})
}

// CAP_SYS_ADMIN does not replace CAP_NET_ADMIN: the kernel would attach the program, and resolve no neighbour.
func TestOpenNeedsNetAdmin(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	onSide(t, l, lab.A, func() error {
		labtest.WithCaps(t, []uint{unix.CAP_SYS_ADMIN, unix.CAP_NET_RAW, unix.CAP_IPC_LOCK, labtest.CapBPF}, func() {
			d, err := Open(lab.Interface, DefaultOptions())
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
				t.Errorf("got %v, want that CAP_NET_ADMIN is needed", err)
			}
			if err == nil {
				_ = d.Close()
			}
		})
		return nil
	})
}
