//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// labOptions returns options for the interface of a lab.
func labOptions(mode Mode) Options {
	return Options{Interface: lab.Interface, Port: testPort, Queues: 1, Mode: mode}
}

func newLab(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	labtest.RequireXDP(t)
	return labtest.New(t, o)
}

// attachIn attaches the program on side A of the lab.
func attachIn(l *lab.Lab, o Options) (s *Steer, err error) {
	err = l.Do(lab.A, func() (err error) {
		s, err = Attach(o)
		return err
	})
	return s, err
}

func mustAttach(t *testing.T, l *lab.Lab, o Options) *Steer {
	t.Helper()
	s, err := attachIn(l, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// programs returns the XDP programs on side A.
func programs(t *testing.T, l *lab.Lab) (progs []attached) {
	t.Helper()
	err := l.Do(lab.A, func() error {
		ifi, err := net.InterfaceByName(lab.Interface)
		if err != nil {
			return err
		}
		progs, err = queryAttached(ifi.Index)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return progs
}

func TestAttachModes(t *testing.T) {
	l := newLab(t, lab.Options{})
	for _, tt := range []struct {
		ifname         string
		mode           Mode
		want           Mode
		refused, fails bool
	}{
		{lab.Interface, Auto, Native, false, false},
		{lab.Interface, Native, Native, false, false},
		{lab.Interface, Generic, Generic, false, false},
		// The loopback driver has no XDP of its own.
		{"lo", Auto, Generic, true, false},
		{"lo", Native, Auto, false, true},
		{"lo", Generic, Generic, false, false},
	} {
		t.Run(fmt.Sprint(tt.ifname, " ", tt.mode), func(t *testing.T) {
			o := labOptions(tt.mode)
			o.Interface = tt.ifname
			if tt.fails {
				if _, err := attachIn(l, o); !errors.Is(err, ErrUnsupported) {
					t.Errorf("got %v, want %v", err, ErrUnsupported)
				}
				return
			}
			s := mustAttach(t, l, o)
			if got := s.Mode(); got != tt.want {
				t.Errorf("mode: got %s, want %s", got, tt.want)
			}
			if got := s.NativeRefusal(); (got != nil) != tt.refused {
				t.Errorf("refusal: got %v, want one: %t", got, tt.refused)
			}
		})
	}
}

func TestAttachJumbo(t *testing.T) {
	l := newLab(t, lab.Options{MTU: 65000, Queues: 2})
	o := labOptions(Native)
	o.Queues = 2
	mustAttach(t, l, o)
}

func TestAttachOptions(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no interface", func(o *Options) { o.Interface = "" }, "no interface"},
		{"no port", func(o *Options) { o.Port = 0 }, "Port"},
		{"no queues", func(o *Options) { o.Queues = 0 }, "Queues"},
		{"too many queues", func(o *Options) { o.Queues = 1 << 20 }, "Queues"},
		{"unknown mode", func(o *Options) { o.Mode = 9 }, "Mode"},
		{"zero address", func(o *Options) { o.Addresses = make([]netip.Addr, 1) }, "address"},
		{"multicast", func(o *Options) { o.Addresses = []netip.Addr{netip.MustParseAddr("ff02::1")} }, "ff02::1"},
		{"too many addresses", func(o *Options) {
			for range MaxAddresses + 1 {
				o.Addresses = append(o.Addresses, local4)
			}
		}, "at most 256"},
		{"unknown interface", func(o *Options) { o.Interface = "no-such-if" }, `"no-such-if"`},
		{"unknown index", func(o *Options) { o.Interface, o.Ifindex = "", 1<<30 }, "1073741824"},
		{"index and name differ", func(o *Options) { o.Interface, o.Ifindex = "no-such-if", 1 }, `is "lo"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := labOptions(Auto)
			tt.change(&o)
			_, err := Attach(o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestNothingIsLost sends packets that the program must pass to the kernel, and counts their arrival.
func TestNothingIsLost(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		t.Run(mode.String(), func(t *testing.T) {
			l := newLab(t, lab.Options{})
			s := mustAttach(t, l, labOptions(mode))
			const packets = 50
			for _, port := range []uint16{testPort, testPort + 1} {
				sendThrough(t, l, port, packets)
			}
			c, err := s.Counters()
			if err != nil {
				t.Fatal(err)
			}
			if c.PassedNoSocket != packets || c.PassedOther < packets || c.Redirected != 0 {
				t.Errorf("got %+v, want %d without socket and at least as many other", c, packets)
			}
		})
	}
}

// sendThrough sends packets from side B to a kernel socket on side A; each must arrive.
func sendThrough(t *testing.T, l *lab.Lab, port uint16, packets int) {
	t.Helper()
	to := netip.AddrPortFrom(lab.A.Addr4(), port)
	server := listenUDP(t, l, lab.A, to)
	client := listenUDP(t, l, lab.B, netip.AddrPortFrom(lab.B.Addr4(), 0))
	buf := make([]byte, 16)
	for i := range packets {
		if _, err := client.WriteToUDPAddrPort([]byte{byte(i)}, to); err != nil {
			t.Fatal(err)
		}
		if err := server.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := server.Read(buf); err != nil || n != 1 || buf[0] != byte(i) {
			t.Fatalf("packet %d of port %d: got %x, %v", i, port, buf[:n], err)
		}
	}
}

func listenUDP(t *testing.T, l *lab.Lab, side lab.Side, addr netip.AddrPort) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := l.Do(side, func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestRegister(t *testing.T) {
	l := newLab(t, lab.Options{Queues: 2})
	o := labOptions(Auto)
	o.Queues = 2
	s := mustAttach(t, l, o)
	fd := xskSocket(t)
	for queue := range 2 {
		if err := errors.Join(s.Register(queue, fd), s.Unregister(queue), s.Unregister(queue), s.Register(queue, fd)); err != nil {
			t.Error(err)
		}
	}
	for _, queue := range []int{-1, 2} {
		if err := s.Register(queue, fd); err == nil {
			t.Errorf("queue %d: registered", queue)
		}
		if err := s.Unregister(queue); err == nil {
			t.Errorf("queue %d: unregistered", queue)
		}
	}
	if err := s.Register(0, int(os.Stdout.Fd())); err == nil {
		t.Error("registered a descriptor that is not an AF_XDP socket")
	}
}

func TestClose(t *testing.T) {
	l := newLab(t, lab.Options{})
	for range 50 {
		s, err := attachIn(l, labOptions(Auto))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
		if got := programs(t, l); len(got) != 0 {
			t.Fatalf("attached after Close: %+v", got)
		}
		_, err = s.Counters()
		for _, err := range []error{err, s.Register(0, 0), s.Unregister(0)} {
			if !errors.Is(err, ErrClosed) {
				t.Fatalf("after Close: got %v, want %v", err, ErrClosed)
			}
		}
	}
}

// TestInterfaceGone deletes the interface while the program is attached.
func TestInterfaceGone(t *testing.T) {
	l := newLab(t, lab.Options{})
	s := mustAttach(t, l, labOptions(Auto))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Counters(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(s.Unregister(0), s.Close()); err != nil {
		t.Error(err)
	}
}

func TestForeign(t *testing.T) {
	const name = "someone_else"
	for _, theirs := range []Mode{Native, Generic} {
		l := newLab(t, lab.Options{})
		attachForeign(t, l, name, theirs)
		before := programs(t, l)
		if len(before) != 1 {
			t.Fatalf("programs: got %+v, want one", before)
		}
		for _, mode := range []Mode{Auto, Native, Generic} {
			t.Run(fmt.Sprintf("%s over %s", mode, theirs), func(t *testing.T) {
				_, err := attachIn(l, labOptions(mode))
				if !errors.Is(err, ErrForeign) {
					t.Fatalf("got %v, want %v", err, ErrForeign)
				}
				want := fmt.Sprintf("program %d %q in %s mode, attached by process %d", before[0].id, name, theirs, os.Getpid())
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
				if got := programs(t, l); len(got) != 1 || got[0] != before[0] {
					t.Errorf("after the refusal: got %+v, want %+v", got, before)
				}
			})
		}
	}
}

// attachForeign attaches a program that passes every packet, on side A.
func attachForeign(t *testing.T, l *lab.Lab, name string, mode Mode) {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         name,
		Type:         ebpf.XDP,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, xdpPass), asm.Return()},
		License:      "Dual BSD/GPL",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	flags := map[Mode]link.XDPAttachFlags{Native: link.XDPDriverMode, Generic: link.XDPGenericMode}[mode]
	err = l.Do(lab.A, func() error {
		ifi, err := net.InterfaceByName(lab.Interface)
		if err != nil {
			return err
		}
		held, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: ifi.Index, Flags: flags})
		if err != nil {
			return err
		}
		t.Cleanup(func() { held.Close() })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBusyInThisProcess(t *testing.T) {
	l := newLab(t, lab.Options{})
	mustAttach(t, l, labOptions(Auto))
	id := programs(t, l)[0].id
	for _, mode := range []Mode{Auto, Native, Generic} {
		_, err := attachIn(l, labOptions(mode))
		if !errors.Is(err, ErrBusy) || errors.Is(err, ErrForeign) {
			t.Fatalf("%s: got %v, want %v", mode, err, ErrBusy)
		}
		want := fmt.Sprintf("program %d %q in native mode, attached by process %d", id, steerProgDatxdpSteer, os.Getpid())
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, want %q in it", mode, err, want)
		}
	}
}

// TestNamespace checks that a Steer works on any thread, also outside the namespace in which it was attached.
func TestNamespace(t *testing.T) {
	l := newLab(t, lab.Options{})
	s := mustAttach(t, l, labOptions(Auto))
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_, err := s.Counters()
		done <- errors.Join(err, s.Register(0, xskSocket(t)), s.Close())
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// SetAddresses changes what the attached program redirects: added addresses at once, removed ones no longer. A list that
// is too long changes nothing.
func TestSetAddresses(t *testing.T) {
	l := newLab(t, lab.Options{})
	first, other4, other6 := local4, netip.MustParseAddr("192.0.2.8"), netip.MustParseAddr("2001:db8::8")
	o := labOptions(Auto)
	o.Addresses = []netip.Addr{first}
	s := mustAttach(t, l, o)
	p := program{s.objs}.withSocket(t)
	check := func(when string, want map[netip.Addr]bool) {
		t.Helper()
		for dst, ours := range want {
			frame, offset := frame6(100), offIP6Dst
			if dst.Is4() {
				frame, offset = frame4(100), offIP4Dst
			}
			copy(frame[offset:], dst.AsSlice())
			if got, err := p.run(frame); err != nil || (got == steerVerdictREDIRECTED) != ours {
				t.Errorf("%s, to %v: verdict %d, %v; want it redirected: %t", when, dst, got, err, ours)
			}
		}
	}
	check("at first", map[netip.Addr]bool{first: true, other4: false, other6: false})
	if err := s.SetAddresses([]netip.Addr{first, other4, other6}); err != nil {
		t.Fatal(err)
	}
	check("added", map[netip.Addr]bool{first: true, other4: true, other6: true})
	if err := s.SetAddresses(make([]netip.Addr, MaxAddresses+1)); err == nil {
		t.Error("too many addresses are accepted")
	}
	check("refused", map[netip.Addr]bool{first: true, other4: true, other6: true})
	if err := s.SetAddresses([]netip.Addr{other6}); err != nil {
		t.Fatal(err)
	}
	check("removed", map[netip.Addr]bool{first: true, other4: false, other6: true})
}
