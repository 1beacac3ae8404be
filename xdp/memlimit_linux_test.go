package xdp

import (
	"errors"
	"io/fs"
	"math"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestMemoryLeft: the smallest room of the own control group and those above counts.
func TestMemoryLeft(t *testing.T) {
	const (
		v2 = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		v1 = "31 24 0:27 /docker/x /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
	)
	for name, tt := range map[string]struct {
		files map[string]string
		group string
		left  int64
	}{
		"no control groups": {nil, "", math.MaxInt64},
		"no limit":          {map[string]string{"proc/self/cgroup": "0::/a", "proc/self/mountinfo": v2, "sys/fs/cgroup/a/memory.max": "max"}, "", math.MaxInt64},
		"own limit": {map[string]string{"proc/self/cgroup": "0::/a", "proc/self/mountinfo": v2, "sys/fs/cgroup/a/memory.max": "1000\n",
			"sys/fs/cgroup/a/memory.current": "700\n", "sys/fs/cgroup/a/memory.stat": "anon 400\ninactive_file 200\nactive_file 100\n"}, "/sys/fs/cgroup/a", 600},
		"limit above": {map[string]string{"proc/self/cgroup": "0::/a/b", "proc/self/mountinfo": v2, "sys/fs/cgroup/a/b/memory.max": "5000",
			"sys/fs/cgroup/a/memory.max": "4000", "sys/fs/cgroup/a/memory.current": "3000"}, "/sys/fs/cgroup/a", 1000},
		"swap": {map[string]string{"proc/self/cgroup": "0::/a", "proc/self/mountinfo": v2, "sys/fs/cgroup/a/memory.max": "10240",
			"sys/fs/cgroup/a/memory.current": "9216", "proc/meminfo": "SwapFree:  2 kB\n"}, "/sys/fs/cgroup/a", 3072},
		"version 1, bind mount": {map[string]string{"proc/self/cgroup": "4:memory:/docker/x/y\n0::/\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/memory/y/memory.limit_in_bytes": "100", "sys/fs/cgroup/memory/y/memory.usage_in_bytes": "60",
			"sys/fs/cgroup/memory/y/memory.stat": "active_file 50\ntotal_active_file 20\n"}, "/sys/fs/cgroup/memory/y", 60},
		"outside of the container": {map[string]string{"proc/self/cgroup": "4:memory:/other\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "50"}, "/sys/fs/cgroup/memory", 50},
	} {
		root := fstest.MapFS{}
		for file, data := range tt.files {
			root[file] = &fstest.MapFile{Data: []byte(data)}
		}
		if group, left := memoryLeft(root); group != tt.group || left != tt.left {
			t.Errorf("%s: got %q, %d, want %q, %d", name, group, left, tt.group, tt.left)
		}
	}
}

// TestLimitKnown: a limit that no file shows is unknown, unless the process is in the first root, or the kernel has no limits.
func TestLimitKnown(t *testing.T) {
	const (
		v2 = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		v1 = "31 24 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
	)
	for name, tt := range map[string]struct {
		files map[string]string
		space string
		want  bool
	}{
		"no proc":                     {nil, "", false},
		"no control groups":           {map[string]string{"proc/self/cgroup": ""}, "", true},
		"version 2":                   {map[string]string{"proc/self/cgroup": "0::/a", "proc/self/mountinfo": v2, "sys/fs/cgroup/a/cgroup.procs": ""}, "", true},
		"version 2, not mounted":      {map[string]string{"proc/self/cgroup": "0::/a", "proc/self/mountinfo": v1}, initialNamespace, false},
		"version 2, root":             {map[string]string{"proc/self/cgroup": "0::/"}, initialNamespace, true},
		"version 2, container's root": {map[string]string{"proc/self/cgroup": "0::/"}, "cgroup:[1]", false},
		"version 2, other groups":     {map[string]string{"proc/self/cgroup": "0::/a", "proc/self/mountinfo": v2, "sys/fs/cgroup/b/cgroup.procs": ""}, "", false},
		"version 2, outside":          {map[string]string{"proc/self/cgroup": "0::/../a", "proc/self/mountinfo": v2, "sys/fs/a/cgroup.procs": "", "sys/fs/cgroup/cgroup.procs": ""}, "", false},
		"version 1":                   {map[string]string{"proc/self/cgroup": "4:memory:/a\n0::/\n", "proc/self/mountinfo": v1 + v2, "sys/fs/cgroup/memory/a/cgroup.procs": ""}, initialNamespace, true},
		"version 1, not mounted":      {map[string]string{"proc/self/cgroup": "4:memory:/a\n0::/\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/a/cgroup.procs": ""}, initialNamespace, false},
		"switched off":                {map[string]string{"proc/self/cgroup": "0::/a", "proc/cgroups": "cpu\t0\t1\t1\nmemory\t0\t1\t0\n"}, "", true},
	} {
		root := fstest.MapFS{}
		for file, data := range tt.files {
			root[file] = &fstest.MapFile{Data: []byte(data)}
		}
		if tt.space != "" {
			root["proc/self/ns/cgroup"] = &fstest.MapFile{Data: []byte(tt.space), Mode: fs.ModeSymlink}
		}
		if got := limitKnown(root); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestLockedMemory: Open locks as much memory as LockedMemory says. The limit concerns processes without CAP_IPC_LOCK.
func TestLockedMemory(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{Queues: 2})
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &was); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &was) }()
	for _, queues := range []int{1, 2} {
		o := small()
		o.Queues, o.Memory = queues, 1<<18
		onSide(t, l, lab.A, func() error {
			n, bytes, err := LockedMemory(lab.Interface, o)
			if err != nil || n != queues {
				t.Fatalf("LockedMemory: %d queues, want %d, %v", n, queues, err)
			}
			for limit, want := range map[int64]error{bytes: nil, bytes - 1: unix.ENOBUFS} {
				if err := openWithin(t, o, limit); !errors.Is(err, want) {
					t.Errorf("%d queues lock %d bytes; with a limit of %d: %v, want %v", queues, bytes, limit, err, want)
				}
			}
			return nil
		})
	}
}

// openWithin opens and closes the interface with a limit of locked memory.
func openWithin(t *testing.T, o Options, limit int64) (err error) {
	t.Helper()
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
		t.Fatal(err)
	}
	if r.Cur = uint64(limit); r.Cur > r.Max {
		t.Skipf("the limit of locked memory cannot be raised to %d bytes", limit)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
		t.Fatal(err)
	}
	labtest.WithCaps(t, []uint{labtest.CapNetAdmin, labtest.CapBPF, labtest.CapPerfmon, unix.CAP_NET_RAW}, func() {
		var d *Device
		if d, err = Open(lab.Interface, o); err == nil {
			err = d.Close()
		}
	})
	return err
}
