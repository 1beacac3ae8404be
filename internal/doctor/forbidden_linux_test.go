package doctor

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// A socket that is forbidden to a process with the capability is an error; without the capability, another check
// reports that.
func TestSocketFinding(t *testing.T) {
	for _, tt := range []struct {
		err  error
		raw  bool
		want string
	}{
		{nil, true, "AF_XDP sockets can be made"},
		{unix.EPERM, false, ""},
		{unix.EPERM, true, "AF_XDP sockets are forbidden though the capability is there (operation not permitted)"},
		{unix.ENOSYS, true, "AF_XDP sockets are forbidden though the capability is there (function not implemented)"},
		{unix.EAFNOSUPPORT, true, "the kernel has no AF_XDP sockets (address family not supported by protocol)"},
	} {
		got := ""
		for _, f := range socketFinding(tt.err, tt.raw) {
			got += f.Found
		}
		if got != tt.want {
			t.Errorf("%v, %t: got %q, want %q", tt.err, tt.raw, got, tt.want)
		}
	}
}

// The files of proc(5) and sysfs(5) that opening reads are missed where they are not mounted.
func TestMissingFiles(t *testing.T) {
	root := fstest.MapFS{"proc/self/mountinfo": {}}
	if got := missingFiles(root); len(got) != 1 || got[0].mount != "mount -t sysfs sysfs /sys" {
		t.Errorf("without /sys: got %v", got)
	}
	root["sys/devices/system/cpu/possible"] = &fstest.MapFile{}
	if got := missingFiles(root); len(got) != 0 {
		t.Errorf("with both: got %v", got)
	}
}

// The smallest quota of the control group and of those above it counts, in both versions of control groups.
func TestCPUQuota(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	for name, tt := range map[string]struct {
		files fstest.MapFS
		want  share // 0 for no limit
	}{
		"none":      {fstest.MapFS{}, 0},
		"version 2": {fstest.MapFS{"proc/self/cgroup": file("0::/a/b"), "sys/fs/cgroup/a/b/cpu.max": file("50000 100000")}, 0.5},
		"unlimited": {fstest.MapFS{"proc/self/cgroup": file("0::/a"), "sys/fs/cgroup/a/cpu.max": file("max 100000")}, 0},
		"above":     {fstest.MapFS{"proc/self/cgroup": file("0::/a/b"), "sys/fs/cgroup/a/b/cpu.max": file("400000 100000"), "sys/fs/cgroup/a/cpu.max": file("150000 100000")}, 1.5},
		"container": {fstest.MapFS{"proc/self/cgroup": file("0::/"), "sys/fs/cgroup/cpu.max": file("25000 100000")}, 0.25},
		"version 1": {fstest.MapFS{"proc/self/cgroup": file("3:memory:/m\n2:cpu,cpuacct:/a"),
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": file("5000"), "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": file("100000")}, 0.05},
		"version 1 unlimited": {fstest.MapFS{"proc/self/cgroup": file("2:cpu:/a"),
			"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": file("-1"), "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": file("100000")}, 0},
	} {
		if got, limited := cpuQuota(tt.files); got != tt.want || limited != (tt.want != 0) {
			t.Errorf("%s: got %v, %t, want %v", name, got, limited, tt.want)
		}
	}
}

// A port that this process may not have is an error, though no program has it.
func TestPrivilegedPort(t *testing.T) {
	labtest.RequireRoot(t)
	x := &exam{Target: Target{kind: ianame.UDP, addr: netip.MustParseAddr("127.0.0.1"), Port: 80}}
	x.address = x.addr
	var got []Finding
	labtest.WithCaps(t, nil, func() { got = checkPort(t.Context(), x) })
	if len(got) != 1 || got[0].Severity != Error || !strings.Contains(got[0].Found, "permission denied") || !strings.Contains(got[0].Fix, "higher port") {
		t.Errorf("got %+v", got)
	}
}

// An error of a socket that is neither "in use" nor "no such address" is an error of the port.
func TestPortRefused(t *testing.T) {
	at := netip.MustParseAddrPort("10.0.0.1:17473")
	for err, want := range map[error]string{unix.EPERM: "seccomp", unix.EMFILE: "too few files", unix.EACCES: "CAP_NET_BIND_SERVICE"} {
		got := portRefused(at, err)
		if got[0].Severity != Error || !strings.Contains(got[0].Means, want) || !strings.Contains(got[0].Found, err.Error()) {
			t.Errorf("%v: got %+v, want %q", err, got, want)
		}
	}
	if !errors.Is(bindUDP(netip.MustParseAddrPort("192.0.2.77:1")), unix.EADDRNOTAVAIL) {
		t.Error("an address of another host can be bound")
	}
}
