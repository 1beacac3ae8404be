package doctor_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/doctor"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// attach attaches a program to the interface over netlink, as ip-link(8) does. No process holds the program then.
func attach(t *testing.T, flags int) {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "left_behind", Type: ebpf.XDP, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	l, err := netlink.LinkByName(lab.Interface)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetXdpFdWithFlags(l, prog.FD(), flags); err != nil {
		t.Fatal(err)
	}
}

// examine returns the finding of one check about the lab's interface.
func examine(t *testing.T, ia, check string) doctor.Finding {
	t.Helper()
	r, err := doctor.Examine(t.Context(), doctor.Target{IA: ia})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("%s found nothing in %+v", check, r.Findings)
	return doctor.Finding{}
}

// TestNetlinkProgram: the recommended command detaches a program that no process holds.
func TestNetlinkProgram(t *testing.T) {
	labtest.RequireXDP(t)
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no ip: apt-get install iproute2; the commands of the doctor are run with it")
	}
	l := labtest.New(t, lab.Options{})
	for mode, flags := range map[string]int{"xdpdrv": nl.XDP_FLAGS_DRV_MODE, "xdpgeneric": nl.XDP_FLAGS_SKB_MODE} {
		err := l.Do(lab.A, func() error {
			attach(t, flags)
			f := examine(t, "xdp:veth0", "xdp-program")
			if want := fmt.Sprintf(`"left_behind", attached over netlink (%s)`, mode); f.Severity != doctor.Error || !strings.HasSuffix(f.Found, want) {
				t.Errorf("found %+v, want an error with %s", f, want)
			}
			if want := fmt.Sprintf("ip link set dev veth0 %s off", mode); f.Command != want {
				t.Errorf("the command is %q, want %q", f.Command, want)
			}
			if out, err := exec.Command("sh", "-c", f.Command).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", f.Command, err, out)
			}
			if f := examine(t, "xdp:veth0", "xdp-program"); f.Severity != doctor.OK {
				t.Errorf("still: %+v", f)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestOtherTraffic: the finding about other traffic tells what happens. A program in copy mode switches segmentation
// offload off at the other end of a veth pair; a program in generic mode does not.
func TestOtherTraffic(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	segments := func() (on bool) {
		err := l.Do(lab.B, func() error {
			e, err := ethtool.NewEthtool()
			if err != nil {
				return err
			}
			defer e.Close()
			all, err := e.FeaturesWithState(lab.Interface)
			on = all["tx-tcp-segmentation"].Active
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return on
	}
	for mode, tt := range map[string]struct {
		found string
		want  bool
	}{"copy": {"an XDP program switches segmentation offload off at the other end of the veth pair", false}, "generic": {"in generic mode", true}} {
		err := l.Do(lab.A, func() error {
			if !segments() {
				t.Errorf("%s: no segmentation offload before", mode)
			}
			if f := examine(t, "xdp:veth0,"+mode, "other-traffic"); f.Severity != doctor.Info || !strings.Contains(f.Found, tt.found) {
				t.Errorf("%s: got %+v, want %q", mode, f, tt.found)
			}
			ia, err := dat.Open("xdp:veth0,"+mode, dat.DefaultOptions())
			if err != nil {
				return err
			}
			defer ia.Close()
			if got := segments(); got != tt.want {
				t.Errorf("%s: segmentation offload of the other end: %t, want %t", mode, got, tt.want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for ia, want := range map[string]int{"xdp:veth0": 1, "auto:veth0": 1, "udp:10.73.0.1": 0, "": 0} {
		err := l.Do(lab.A, func() error {
			r, err := doctor.Examine(t.Context(), doctor.Target{IA: ia})
			if err != nil {
				return err
			}
			got := len(slices.DeleteFunc(r.Findings, func(f doctor.Finding) bool { return f.Check != "other-traffic" }))
			if got != want {
				t.Errorf("%q: %d findings about other traffic, want %d", ia, got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLayers: an interface on which AF_XDP would receive nothing has an error and a remedy.
func TestLayers(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	err := l.Do(lab.A, func() error {
		return errors.Join(labtest.AddOver("macvlan", "over0", lab.Interface, netip.MustParsePrefix("10.75.0.1/24")),
			labtest.AddTunnel("tun0", netip.MustParsePrefix("10.76.0.1/24")))
	})
	if err != nil {
		t.Fatal(err)
	}
	for ia, want := range map[string]string{"xdp:over0": "arp_ignore=1", "xdp:tun0": "udp:10.76.0.1"} {
		err := l.Do(lab.A, func() error {
			if f := examine(t, ia, "layer"); f.Severity != doctor.Error || !strings.Contains(f.Fix, want) {
				t.Errorf("%s: got %+v, want an error with %s", ia, f, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestModes: a mode that the driver does not grant is an error if it is requested by name.
func TestModes(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{Queues: 2})
	must(t, l.Do(lab.A, func() error { return labtest.AddTap("tap0", netip.MustParsePrefix("10.77.0.1/24")) }))
	tests := []struct {
		ia, check string
		want      doctor.Severity
		found     string
	}{
		{"xdp:veth0", "driver", doctor.OK, "driver veth has native XDP"},
		{"xdp:veth0,generic", "driver", doctor.OK, "driver veth has native XDP"},
		{"xdp:veth0,zero-copy", "driver", doctor.Error, "driver veth has no zero-copy mode"},
		{"xdp:lo,copy", "driver", doctor.Error, "the loopback device has no native XDP, so no copy mode"},
		{"xdp:lo", "driver", doctor.Info, "generic mode, slower"},
		{"xdp:veth0", "queues", doctor.OK, "2 queues"},
		{"xdp:veth0 queues=1", "queues", doctor.OK, "on 1 of 2 queues"},
		{"xdp:veth0 queues=3", "queues", doctor.Error, "veth0 has 2 receive queues, not 3"},
		{"xdp:tap0", "queues", doctor.Error, "tap0 has no receive queue"},
		{"xdp:eth7", "interface", doctor.Error, "there is no interface eth7"},
		{"udp:10.73.0.9", "interface", doctor.Error, "10.73.0.9 is not an address of this host"},
	}
	for _, tt := range tests {
		err := l.Do(lab.A, func() error {
			f := examine(t, tt.ia, tt.check)
			if strings.Contains(f.Found, "is known when it is tried") {
				t.Logf("%s: the kernel does not tell what drivers grant: Linux 6.3 does", tt.ia)
				return nil
			}
			if f.Severity != tt.want || !strings.Contains(f.Found, tt.found) {
				t.Errorf("%s: got %+v, want %v, %q", tt.ia, f, tt.want, tt.found)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinkLocal: a link-local address belongs to the interface that its zone names, by name or by index, and its peer
// is reached through that interface.
func TestLinkLocal(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	for s, addr := range map[lab.Side]string{lab.A: "fe80::73:1/64", lab.B: "fe80::73:2/64"} {
		must(t, l.Do(s, func() error { return labtest.AddAddress(lab.Interface, netip.MustParsePrefix(addr)) }))
	}
	must(t, l.Do(lab.A, func() error {
		veth, err := netlink.LinkByName(lab.Interface)
		if err != nil {
			return err
		}
		index := strconv.Itoa(veth.Attrs().Index)
		zones := map[string]doctor.Severity{lab.Interface: doctor.OK, index: doctor.OK, "lo": doctor.Error}
		for zone, want := range zones {
			if f := examine(t, "udp:fe80::73:1%"+zone, "interface"); f.Severity != want {
				t.Errorf("zone %s: got %+v, want %v", zone, f, want)
			}
		}
		for _, peer := range []string{"fe80::73:2", "fe80::73:2%" + lab.Interface} {
			target := doctor.Target{IA: "udp:fe80::73:1%" + lab.Interface, Peer: netip.MustParseAddr(peer)}
			r, err := doctor.Examine(t.Context(), target)
			if err != nil {
				return err
			}
			for _, check := range []string{"route", "neighbour"} {
				if !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return f.Check == check && f.Severity == doctor.OK }) {
					t.Errorf("%s: %s is not in order: %+v", peer, check, r.Findings)
				}
			}
		}
		return nil
	}))
}

// TestNoAddress: an interface without an address is an error, until it gets one.
func TestNoAddress(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	err := l.Do(lab.A, func() error {
		veth, err := netlink.LinkByName(lab.Interface)
		if err != nil {
			return err
		}
		all, err := netlink.AddrList(veth, netlink.FAMILY_ALL)
		if err != nil {
			return err
		}
		for i := range all {
			if err := netlink.AddrDel(veth, &all[i]); err != nil {
				return err
			}
		}
		f := examine(t, "auto:veth0", "address")
		if f.Severity != doctor.Error || f.Found != "veth0 has no address" || f.Command != "ip address add 10.0.0.1/24 dev veth0" {
			t.Errorf("got %+v", f)
		}
		given, err := netlink.ParseAddr("10.0.0.1/24")
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(veth, given); err != nil {
			return err
		}
		if f := examine(t, "auto:veth0", "address"); f.Severity != doctor.OK {
			t.Errorf("still: %+v", f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// limitMemory removes CAP_IPC_LOCK from this thread, and limits the memory that the process may lock. restore undoes
// both; call it on the same thread.
func limitMemory(t *testing.T, bytes uint64) (restore func()) {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	var was unix.Rlimit
	must(t, unix.Capget(&header, &have[0]))
	must(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &was))
	fewer := have
	fewer[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	must(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: min(bytes, was.Max), Max: was.Max}))
	must(t, unix.Capset(&header, &fewer[0]))
	return func() {
		must(t, unix.Capset(&header, &have[0]))
		must(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &was))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMemlockOfQueues: the limit of locked memory must suffice for all queues, also if no interface is named.
func TestMemlockOfQueues(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{Queues: 2})
	err := l.Do(lab.A, func() error {
		defer limitMemory(t, 20<<20)() // enough for one queue
		for _, ia := range []string{"", "xdp:veth0"} {
			f := examine(t, ia, "memlock")
			if f.Severity != doctor.Error || !strings.HasSuffix(f.Found, "are needed for 2 queues") || f.Group != "veth0" {
				t.Errorf("%q: got %+v, want an error for 2 queues of veth0", ia, f)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
