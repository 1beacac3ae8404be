package lab_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

func TestNew(t *testing.T) {
	tests := []struct {
		name   string
		opts   lab.Options
		queues int
		mtu    int
	}{
		{"defaults", lab.Options{}, 1, 1500},
		{"four queues", lab.Options{Queues: 4}, 4, 1500},
		{"jumbo", lab.Options{MTU: 9000}, 1, 9000},
		{"largest", lab.Options{Queues: 2, MTU: 65000}, 2, 65000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := interfaces(t)
			l := labtest.New(t, tt.opts)
			for _, s := range []lab.Side{lab.A, lab.B} {
				do(t, l, s, func() { checkEnd(t, s, tt.queues, tt.mtu) })
			}
			if got := interfaces(t); got != before {
				t.Errorf("interfaces outside the lab: got %s, want %s", got, before)
			}
		})
	}
}

func checkEnd(t *testing.T, s lab.Side, queues, mtu int) {
	t.Helper()
	ifi, err := net.InterfaceByName(lab.Interface)
	if err != nil {
		t.Fatal(err)
	}
	if ifi.MTU != mtu || ifi.Flags&net.FlagUp == 0 || ifi.HardwareAddr.String() != s.MAC().String() {
		t.Errorf("side %s: got %+v, want up, MTU %d, MAC %s", s, ifi, mtu, s.MAC())
	}
	addrs, err := ifi.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("[%s/24 %s/64]", s.Addr4(), s.Addr6())
	if got := fmt.Sprint(addrs); got != want {
		t.Errorf("side %s: addresses: got %s, want %s", s, got, want)
	}
	if got := queueCount(t, ifi.Index); got != [2]int{queues, queues} {
		t.Errorf("side %s: RX, TX queues: got %v, want %d each", s, got, queues)
	}
}

func TestTraffic(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	for _, addr := range []func(lab.Side) netip.Addr{lab.Side.Addr4, lab.Side.Addr6} {
		t.Run(addr(lab.A).String(), func(t *testing.T) {
			server := listen(t, l, lab.A, addr(lab.A))
			client := listen(t, l, lab.B, addr(lab.B))
			if err := exchange(server, client, "ping"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestSetMTU(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	if err := l.SetMTU(9000); err != nil {
		t.Fatal(err)
	}
	for _, s := range []lab.Side{lab.A, lab.B} {
		do(t, l, s, func() {
			if ifi, err := net.InterfaceByName(lab.Interface); err != nil || ifi.MTU != 9000 {
				t.Errorf("side %s: got %+v, %v, want MTU 9000", s, ifi, err)
			}
		})
	}
}

func TestSetUp(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	for _, up := range []bool{false, true} {
		if err := l.SetUp(lab.B, up); err != nil {
			t.Fatal(err)
		}
		do(t, l, lab.B, func() {
			ifi, err := net.InterfaceByName(lab.Interface)
			if err != nil {
				t.Fatal(err)
			}
			if got := ifi.Flags&net.FlagUp != 0; got != up {
				t.Errorf("up: got %t, want %t", got, up)
			}
		})
	}
}

func TestDoPutsThreadBack(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	home := namespace(t)
	failure := errors.New("failure of fn")
	var inA, inB string
	err := l.Do(lab.A, func() error {
		inA = namespace(t)
		return errors.Join(l.Do(lab.B, func() error {
			inB = namespace(t)
			return failure
		}))
	})
	if !errors.Is(err, failure) {
		t.Errorf("error of fn: got %v, want %v", err, failure)
	}
	if inA == home || inB == home || inA == inB {
		t.Errorf("namespaces not distinct: home %s, a %s, b %s", home, inA, inB)
	}
	func() {
		defer func() { _ = recover() }()
		_ = l.Do(lab.A, func() error { panic("in namespace") })
	}()
	if got := namespace(t); got != home {
		t.Errorf("after Do: got namespace %s, want %s", got, home)
	}
}

func TestClose(t *testing.T) {
	labtest.RequireRoot(t)
	before := descriptors(t)
	for range 20 {
		l, err := lab.New(lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := descriptors(t); got != before {
		t.Errorf("open descriptors: got %d, want %d", got, before)
	}
}

// TestCloseDeletesLink keeps a namespace open after its lab is closed, as a socket could.
func TestCloseDeletesLink(t *testing.T) {
	labtest.RequireRoot(t)
	l, err := lab.New(lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ns *os.File
	do(t, l, lab.B, func() { ns, err = os.Open("/proc/thread-self/ns/net") })
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	inNamespace(t, ns, func() {
		if _, err := net.InterfaceByName(lab.Interface); err == nil {
			t.Errorf("%s is still there after Close", lab.Interface)
		}
	})
}

func do(t *testing.T, l *lab.Lab, s lab.Side, fn func()) {
	t.Helper()
	if err := l.Do(s, func() error { fn(); return nil }); err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T, l *lab.Lab, s lab.Side, addr netip.Addr) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := l.Do(s, func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func exchange(server, client *net.UDPConn, message string) error {
	if err := server.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := client.WriteTo([]byte(message), server.LocalAddr()); err != nil {
		return err
	}
	buf := make([]byte, 100)
	n, from, err := server.ReadFrom(buf)
	if err != nil {
		return err
	}
	if got := string(buf[:n]); got != message || from.String() != client.LocalAddr().String() {
		return fmt.Errorf("got %q from %s, want %q from %s", got, from, message, client.LocalAddr())
	}
	return nil
}

// namespace returns the name of the calling thread's network namespace.
func namespace(t *testing.T) string {
	t.Helper()
	name, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func interfaces(t *testing.T) string {
	t.Helper()
	ifis, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ifi := range ifis {
		names = append(names, ifi.Name)
	}
	return fmt.Sprint(names)
}

func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

func inNamespace(t *testing.T, ns *os.File, fn func()) {
	t.Helper()
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	if err := netns.Set(netns.NsHandle(ns.Fd())); err != nil {
		t.Fatal(err)
	}
	fn()
	if err := netns.Set(home); err != nil {
		t.Fatal(err)
	}
	runtime.UnlockOSThread()
}

func queueCount(t *testing.T, index int) [2]int {
	t.Helper()
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		t.Fatal(err)
	}
	return [2]int{link.Attrs().NumRxQueues, link.Attrs().NumTxQueues}
}
