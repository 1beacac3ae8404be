package xdp

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MemoryLimitKnown reports whether CheckMemory sees the memory limits of this process's control group, or that the process
// has none. In a chroot or a container, the file system of the control groups may be missing, or show other groups. The
// kernel may then kill the process during Open.
//
// System calls: those of reading files.
func MemoryLimitKnown() bool { return limitKnown(os.DirFS("/")) }

// initialNamespace is the name of the first control group namespace (PROC_CGROUP_INIT_INO of linux/proc_ns.h). Outside of
// it, the root of a hierarchy is a group like others, and can have a limit.
const initialNamespace = "cgroup:[4026531835]"

// limitKnown is MemoryLimitKnown for the files below root. The memory controller belongs to one hierarchy.
func limitKnown(root fs.FS) bool {
	if _, err := fs.Stat(root, "proc/self/cgroup"); err != nil {
		return false
	}
	v2, v1 := &hierarchies[0], &hierarchies[1]
	h := v2
	if v1.group(root) != "" {
		h = v1
	}
	group := h.group(root)
	space, _ := fs.ReadLink(root, "proc/self/ns/cgroup") // empty on an error
	if group == "" || disabled(root) || group == "/" && space == initialNamespace {
		return true
	}
	own, mounted := h.find(root)
	_, err := fs.Stat(root, filepath.Join(own, "cgroup.procs"))
	return mounted != "" && strings.HasPrefix(own, mounted) && err == nil
}

// disabled reports whether the kernel was started without the memory controller.
func disabled(root fs.FS) bool {
	for line := range linesOf(root, "proc/cgroups") { // NAME HIERARCHY GROUPS ENABLED
		if f := strings.Fields(line); len(f) == 4 && f[0] == "memory" {
			return f[3] == "0"
		}
	}
	return false
}
