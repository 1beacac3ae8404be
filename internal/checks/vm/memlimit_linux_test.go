package vm

import (
	"os"
	"testing"
)

// memoryLimit holds doctor's verdict and the error of opening against memory limits of control groups of version 2, which
// this host may have bound to version 1. The machine's init does not mount them.
func memoryLimit(t *testing.T, n *network) {
	n.install(t, "doctor.test")
	m := n.machines[0]
	n.ssh(t, m, os.DevNull, "mount -t cgroup2 cgroup2 /sys/fs/cgroup && echo +memory >/sys/fs/cgroup/cgroup.subtree_control")
	n.runTests(t, m, "doctor.test", "^TestMemoryLimit")
}
