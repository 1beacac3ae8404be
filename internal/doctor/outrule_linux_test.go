package doctor_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// groupWithoutUDP makes a control group whose processes may not send UDP, as an output rule of a packet filter forbids
// it, and returns its directory.
func groupWithoutUDP(t *testing.T) string {
	t.Helper()
	const protocol = 9 // offset in the IPv4 header
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.CGroupSKB, AttachType: ebpf.AttachCGroupInetEgress, License: "GPL", Instructions: asm.Instructions{
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
		on, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: ebpf.AttachCGroupInetEgress, Program: prog})
		if err == nil {
			t.Cleanup(func() { _ = on.Close() })
			return dir
		}
	}
	t.Skip("no control group of version 2 can be made here: cgroups(7), writable under /sys/fs/cgroup")
	return ""
}

// TestOwnOutputRule: if an own rule drops the port and the neighbour is unknown, doctor names the rule. It does not say
// that the neighbour is silent, because nobody asked it.
func TestOwnOutputRule(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `echo $$ >"$1/cgroup.procs" && exec "$0" -test.run='^TestVerdictOfProcess$'`, os.Args[0], groupWithoutUDP(t))
	cmd.Env = append(os.Environ(), "DOCTOR_IA=udp:10.73.0.1", "DOCTOR_PEER="+lab.B.Addr4().String())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	child, err := l.Start(lab.A, cmd)
	must(t, err)
	if err := child.Wait(); err != nil || !strings.Contains(out.String(), "a rule of this host forbids to send to UDP port 17473") {
		t.Errorf("%v, want that a rule of this host forbids to send, in:\n%s", err, out.String())
	}
}
