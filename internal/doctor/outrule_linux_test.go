package doctor_test

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/doctor"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// groupWithoutUDP makes a control group whose processes do not send or receive UDP, as a rule of a packet filter forbids
// it, and returns its directory. Tests with different attach types must not run in parallel.
func groupWithoutUDP(t *testing.T, way ebpf.AttachType) string {
	t.Helper()
	const protocol = 9 // offset in the IPv4 header
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.CGroupSKB, AttachType: way, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R2, protocol),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, -8),
		asm.Mov.Imm(asm.R4, 1),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.LoadMem(asm.R1, asm.RFP, -8, asm.Byte),
		asm.JEq.Imm(asm.R1, 17, "drop"),
		asm.Mov.Imm(asm.R0, 1),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("drop"),
		asm.Return(),
	}})
	must(t, err)
	defer prog.Close()
	for _, top := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		dir := filepath.Join(top, "datxdp-test-"+strconv.Itoa(os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) }) // its processes have ended
		on, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: way, Program: prog})
		if err == nil {
			t.Cleanup(func() { _ = on.Close() })
			return dir
		}
	}
	t.Skip("no control group of version 2 can be made here: cgroups(7), writable under /sys/fs/cgroup")
	return ""
}

// verdictInGroup returns what doctor says in a process of a control group, on side A.
func verdictInGroup(t *testing.T, l *lab.Lab, group, ia string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `echo $$ >"$1/cgroup.procs" && exec "$0" -test.run='^TestVerdictOfProcess$'`, os.Args[0], group)
	cmd.Env = append(os.Environ(), "DOCTOR_IA="+ia, "DOCTOR_PEER="+lab.B.Addr4().String())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	child, err := l.Start(lab.A, cmd)
	must(t, err)
	if err := child.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

// TestOwnOutputRule: if an own rule drops the port and the neighbour is unknown, doctor names the rule. It does not say
// that the neighbour is silent, because nobody asked it.
func TestOwnOutputRule(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	got := verdictInGroup(t, l, groupWithoutUDP(t, ebpf.AttachCGroupInetEgress), "udp:10.73.0.1")
	if !strings.Contains(got, "a rule of this host forbids to send to UDP port 17473") {
		t.Errorf("want that a rule of this host forbids to send, in:\n%s", got)
	}
}

// TestOwnInputRule: if an own rule drops what comes to the port, kernel UDP does not work. AF_XDP does, and doctor does
// not blame the peer for an answer that the rule has dropped.
func TestOwnInputRule(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	must(t, l.Do(lab.B, func() error {
		ia, err := dat.Open("udp:10.73.0.2", dat.DefaultOptions())
		if err == nil {
			t.Cleanup(func() { _ = ia.Close() })
		}
		return err
	}))
	group := groupWithoutUDP(t, ebpf.AttachCGroupInetIngress)
	for ia, want := range map[string]string{
		"udp:10.73.0.1": "does not work: UDP will not work on 10.73.0.1: a rule of this host drops what comes to UDP port 17473",
		"xdp:veth0":     "works:",
		"auto:veth0":    "works:",
	} {
		if got := verdictInGroup(t, l, group, ia); !strings.HasPrefix(got, want) {
			t.Errorf("%s: want %q, got %s", ia, want, got)
		}
	}
}

// TestUnserved: an address of the interface whose port another program has is named.
func TestUnserved(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	must(t, l.Do(lab.A, func() error {
		must(t, labtest.AddAddress(lab.Interface, netip.MustParsePrefix("10.73.0.9/24")))
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.73.0.9:17473")))
		must(t, err)
		defer c.Close()
		r, err := doctor.Examine(t.Context(), doctor.Target{IA: "xdp:veth0"})
		must(t, err)
		if !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool {
			return f.Severity == doctor.Warning && f.Found == "10.73.0.9 is not served: another program has its UDP port 17473"
		}) {
			t.Errorf("got %+v", r.Findings)
		}
		return nil
	}))
}
