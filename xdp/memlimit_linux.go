package xdp

import (
	"bufio"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// CheckMemory returns the error with which Open would refuse the interface because a control group (cgroups(7)) of this
// process has too little memory left. It returns nil if there is enough memory, or if the limit or the queues cannot be
// read. Without this check the kernel would kill the process during Open.
//
// System calls: those of reading files, and of ethtool.
func CheckMemory(ifname string, o Options) error {
	queues, ring, err := o.extent(ifname)
	if err != nil {
		return nil
	}
	return checkMemory(ifname, queues, o.frameMemory(o.Mode, ring))
}

// LockedMemory returns the number of queues that Open opens, and the memory in bytes that it locks for them. Without the
// capability CAP_IPC_LOCK, the kernel limits what all processes of a user lock (RLIMIT_MEMLOCK). In mode Auto, Open first
// tries zero-copy, which takes the most; it does not if the driver has no XDP, as with mode Generic.
//
// System calls: those of ethtool.
func LockedMemory(ifname string, o Options) (queues int, bytes int64, err error) {
	queues, ring, err := o.extent(ifname)
	if err != nil {
		return 0, 0, err
	}
	return queues, int64(queues) * (o.frameMemory(o.Mode, ring) + int64(o.Memory)), nil
}

// extent returns the number of queues to open, and the slots of the NIC's receive ring.
func (o *Options) extent(ifname string) (queues, ring int, err error) {
	e, err := openEthtool()
	if err != nil {
		return 0, 0, err
	}
	defer e.Close()
	c, err := e.channels(ifname)
	if err != nil {
		return 0, 0, err
	}
	queues, err = c.toOpen(ifname, o.Queues)
	return queues, e.ring(ifname), err
}

// frameMemory returns the size in bytes of the frames of a queue. With zero-copy, the slots of the NIC's receive ring hold
// additional frames.
func (o *Options) frameMemory(m Mode, ring int) int64 {
	frames := o.Frames
	if m == Auto || m == ZeroCopy {
		frames += ring
	}
	return int64(frames) * int64(o.FrameSize)
}

// checkMemory returns an error if the queues with their frames exceed the memory that is left. perQueue is in bytes.
func checkMemory(ifname string, queues int, perQueue int64) error {
	need := int64(queues)*perQueue + openOverhead
	group, left := memoryLeft(os.DirFS("/"))
	if left >= need {
		return nil
	}
	return &openError{fmt.Sprintf("xdp: %s: %d MiB of memory are needed for the frames of %d queues, and %d MiB are left in the control group %s: "+
		"raise the limit of the container or the service, open fewer queues (queues=N), or use kernel UDP (udp:ADDRESS)",
		ifname, need>>20, queues, left>>20, group), []error{unix.ENOMEM}}
}

// memoryLeft returns the memory in bytes that this process can still get, and the control group that limits it: its own
// or one above. Without a limit, or if no file shows it, the result is math.MaxInt64. Files are read below root.
func memoryLeft(root fs.FS) (group string, left int64) {
	left = math.MaxInt64
	for _, h := range hierarchies {
		own, mounted := h.find(root)
		for at := own; mounted != "" && strings.HasPrefix(at, mounted); at = filepath.Dir(at) {
			if n := h.left(root, at); n < left {
				group, left = "/"+at, n
			}
		}
	}
	return group, left
}

// hierarchy is a version of control groups, with the names of its files.
type hierarchy struct {
	fsType, controller  string // controller is an option of the mount; empty in version 2
	limit, usage, cache string // cache is the prefix of the lines in memory.stat that count the page cache
}

var hierarchies = []hierarchy{
	{"cgroup2", "", "memory.max", "memory.current", ""},
	{"cgroup", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"},
}

// find returns the directory of this process's control group, and the directory where the hierarchy is mounted, both
// without the leading slash. mounted is empty if the hierarchy is not there.
func (h *hierarchy) find(root fs.FS) (own, mounted string) {
	group := h.group(root)
	if group == "" {
		return "", ""
	}
	for line := range linesOf(root, "proc/self/mountinfo") {
		// 36 35 98:0 /ROOT /MOUNTED OPTIONS [OPTIONAL] - TYPE SOURCE OPTIONS
		head, tail, _ := strings.Cut(line, " - ")
		f, super := strings.Fields(head), strings.Fields(tail)
		if len(f) < 5 || len(super) < 3 || super[0] != h.fsType ||
			h.controller != "" && !contains(super[2], h.controller) {
			continue
		}
		mounted = strings.TrimPrefix(f[4], "/")
		below, inside := strings.CutPrefix(group, strings.TrimSuffix(f[3], "/"))
		if !inside { // the group is outside of what the container sees: its own limit is at the top
			below = ""
		}
		return filepath.Join(mounted, below), mounted
	}
	return "", ""
}

// group returns the control group of this process; empty if it is not listed.
func (h *hierarchy) group(root fs.FS) string {
	for line := range linesOf(root, "proc/self/cgroup") { // NUMBER:CONTROLLERS:GROUP
		if f := strings.SplitN(line, ":", 3); len(f) == 3 && contains(f[1], h.controller) {
			return f[2]
		}
	}
	return ""
}

// contains reports whether a list with commas has an element. The empty list contains the empty element.
func contains(list, element string) bool { return slices.Contains(strings.Split(list, ","), element) }

// left returns the memory that one control group has left. The kernel gives back the page cache, and it moves other
// memory to the swap space. The frames are locked, so they never exceed the limit itself.
func (h *hierarchy) left(root fs.FS, dir string) int64 {
	limit, ok := number(root, filepath.Join(dir, h.limit))
	if !ok {
		return math.MaxInt64
	}
	used, _ := number(root, filepath.Join(dir, h.usage))
	stat := filepath.Join(dir, "memory.stat")
	used -= field(root, stat, h.cache+"inactive_file") + field(root, stat, h.cache+"active_file")
	used -= field(root, "proc/meminfo", "SwapFree:") << 10
	return limit - max(used, 0)
}

// number reads a file with one number; ok is false for "max" and without the file.
func number(root fs.FS, file string) (n int64, ok bool) {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

// field returns the number in the line that begins with a name; 0 without one.
func field(root fs.FS, file, name string) int64 {
	for line := range linesOf(root, file) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64) // 0 on an error
			return n
		}
	}
	return 0
}

// linesOf yields the lines of a file; none if it cannot be read.
func linesOf(root fs.FS, file string) func(func(string) bool) {
	return func(yield func(string) bool) {
		f, err := root.Open(file)
		if err != nil {
			return
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if !yield(lines.Text()) {
				return
			}
		}
	}
}
