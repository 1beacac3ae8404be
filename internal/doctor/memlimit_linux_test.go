package doctor_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/doctor"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// memoryGroup makes a control group with a memory limit in bytes, and returns its directory.
func memoryGroup(t *testing.T, limit int) string {
	t.Helper()
	for _, v := range []struct{ top, file string }{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		dir := filepath.Join(v.top, "datxdp-test-"+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(limit))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })                          // its processes have ended
		f, err := os.OpenFile(filepath.Join(dir, v.file), os.O_WRONLY, 0) // it exists in a control group only
		if err != nil {
			continue
		}
		_, err = f.WriteString(strconv.Itoa(limit))
		if errors.Join(err, f.Close()) == nil {
			return dir
		}
	}
	t.Skip("no control group for memory can be made here: cgroups(7) version 1 or 2, writable under /sys/fs/cgroup")
	return ""
}

// TestMemoryLimit: if the control group of a process has too little memory for the frames, Open fails and doctor says so.
// Otherwise the kernel would kill the process.
func TestMemoryLimit(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{Queues: 8})
	group := memoryGroup(t, 110<<20)
	for ia, want := range map[string]string{"xdp:veth0": "refused, doctor error", "xdp:veth0 queues=2": "opened, doctor ok", "udp:10.73.0.1": "opened, doctor ok"} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `echo $$ >"$1/cgroup.procs" && exec "$0" -test.run='^TestOpenInGroup$'`, os.Args[0], group)
		cmd.Env = append(os.Environ(), "DOCTOR_CHECK=memory-limit", "DOCTOR_GROUP_IA="+ia)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		child, err := l.Start(lab.A, cmd)
		must(t, err)
		if err := child.Wait(); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, want %q in:\n%s", ia, err, want, out.String())
		}
	}
}

// TestMemoryLimitOutOfSight: where the files of the control groups are not in sight, doctor does not say that there is no
// limit. It opens, because there is none here.
func TestMemoryLimitOutOfSight(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	group := memoryGroup(t, 1<<30)
	for hide, want := range map[string]string{"": "opened, doctor ok", "umount -R -l /sys/fs/cgroup &&": "opened, doctor warning"} {
		cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "/bin/sh", "-c",
			`echo $$ >"$1/cgroup.procs" && `+hide+` exec "$0" -test.run='^TestOpenInGroup$'`, os.Args[0], group)
		cmd.Env = append(os.Environ(), "DOCTOR_CHECK=memory-limit", "DOCTOR_GROUP_IA=xdp:veth0")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		child, err := l.Start(lab.A, cmd)
		must(t, err)
		if err := child.Wait(); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q: %v, want %q in:\n%s", hide, err, want, out.String())
		}
	}
}

// TestLockedMemory: if the frames exceed the limit of locked memory, Open fails and doctor says so, and only then.
func TestLockedMemory(t *testing.T) {
	labtest.RequireXDP(t)
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("setpriv(1) is not installed")
	}
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit))
	l := labtest.New(t, lab.Options{Queues: 2})
	for _, tt := range []struct {
		ia   string
		kib  int
		want string
	}{
		{"xdp:veth0 queues=1", 8 << 10, "refused, doctor error"},
		{"xdp:veth0", 20 << 10, "refused, doctor error"},
		{"xdp:veth0 queues=1", 20 << 10, "opened, doctor ok"},
		{"xdp:veth0", 40 << 10, "opened, doctor ok"},
	} {
		if uint64(tt.kib)<<10 > limit.Max {
			t.Logf("%s: the limit of locked memory cannot be raised to %d KiB here", tt.ia, tt.kib)
			continue
		}
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `ulimit -l "$1" && exec setpriv --bounding-set -ipc_lock "$0" -test.run='^TestOpenInGroup$'`,
			os.Args[0], strconv.Itoa(tt.kib))
		cmd.Env = append(os.Environ(), "DOCTOR_CHECK=memlock", "DOCTOR_GROUP_IA="+tt.ia)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		child, err := l.Start(lab.A, cmd)
		must(t, err)
		if err := child.Wait(); err != nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s, %d KiB: %v, want %q in:\n%s", tt.ia, tt.kib, err, tt.want, out.String())
		}
	}
}

// TestOpenInGroup is a process of TestMemoryLimit and TestLockedMemory.
func TestOpenInGroup(t *testing.T) {
	ia := os.Getenv("DOCTOR_GROUP_IA")
	if ia == "" {
		t.Skip("it is a process of TestMemoryLimit and TestLockedMemory")
	}
	r, err := doctor.Examine(t.Context(), doctor.Target{IA: ia})
	must(t, err)
	says := "ok"
	for _, f := range r.Findings {
		if f.Check == os.Getenv("DOCTOR_CHECK") {
			says = f.Severity.String()
			fmt.Println(f.Found)
		}
	}
	happens := "opened"
	open, err := dat.Open(ia, dat.DefaultOptions())
	switch {
	case errors.Is(err, dat.ErrInsufficientResources):
		happens = "refused"
	case err != nil:
		t.Fatal(err)
	default:
		defer open.Close()
	}
	fmt.Printf("%s, doctor %s\n", happens, says)
}
