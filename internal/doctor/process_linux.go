package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/xdp"
)

// capability is a capability that the adapter uses, and its purpose.
type capability struct {
	bit       uint
	name, why string
}

// needed returns the capabilities that AF_XDP needs on this kernel version.
func needed(v version) []capability {
	all := []capability{
		{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", "attach to the interface"},
		{unix.CAP_NET_RAW, "CAP_NET_RAW", "make AF_XDP sockets"},
		{unix.CAP_BPF, "CAP_BPF", "load the program"},
	}
	if !v.atLeast(frags) {
		all = append(all, capability{unix.CAP_PERFMON, "CAP_PERFMON", "load the program"})
	}
	return all
}

// effectiveCaps returns the effective capabilities of this process. System calls: capget.
func effectiveCaps() uint64 {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective)
}

func has(caps uint64, bit uint) bool { return caps>>bit&1 != 0 }

// lacks returns the needed capabilities that are missing. CAP_SYS_ADMIN includes those for BPF.
func lacks(caps uint64, v version) (missing []capability) {
	for _, c := range needed(v) {
		stands := (c.bit == unix.CAP_BPF || c.bit == unix.CAP_PERFMON) && has(caps, unix.CAP_SYS_ADMIN)
		if !has(caps, c.bit) && !stands {
			missing = append(missing, c)
		}
	}
	return missing
}

func checkCapabilities(_ context.Context, x *exam) []Finding {
	who := fmt.Sprintf("uid %d", unix.Geteuid())
	if unix.Geteuid() == 0 {
		who = "root"
	}
	missing := lacks(x.caps, x.kernel)
	if len(missing) == 0 {
		return ok("%s has %s", who, strings.Join(names(needed(x.kernel)), ", "))
	}
	fix, command := "run as root, or give them to the program (a service: AmbientCapabilities= in its unit)", setcap(x.kernel)
	if x.HostOnly {
		fix, command = "run as root: to make namespaces takes CAP_SYS_ADMIN too", ""
	}
	var whys []string
	for _, c := range missing {
		whys = append(whys, c.name+" to "+c.why)
	}
	return failure(fmt.Sprintf("%s lacks %s", who, strings.Join(names(missing), ", ")),
		"AF_XDP needs "+strings.Join(whys, ", ")+".", fix, command)
}

func names(caps []capability) (all []string) {
	for _, c := range caps {
		all = append(all, c.name)
	}
	return all
}

// setcap returns the command that gives this program the needed capabilities, and CAP_IPC_LOCK for unlimited memory.
func setcap(v version) string {
	program, err := os.Executable()
	if err != nil {
		program = "PROGRAM"
	}
	return fmt.Sprintf("sudo setcap %s,cap_ipc_lock=ep %s", strings.ToLower(strings.Join(names(needed(v)), ",")), program)
}

// checkBPF checks whether bpf(2) works. The capabilities do not show this, because containers and lockdown have other
// ways to forbid it.
//
// System calls: bpf(BPF_PROG_LOAD) of a program that does nothing.
func checkBPF(_ context.Context, x *exam) []Finding {
	if len(lacks(x.caps, x.kernel)) > 0 || len(missingFiles(os.DirFS("/"))) > 0 {
		return nil // another check reports it
	}
	err := features.HaveProgramType(ebpf.XDP)
	switch {
	case err == nil:
		return ok("XDP programs can be loaded")
	case errors.Is(err, ebpf.ErrNotSupported):
		return failure("the kernel has no XDP programs", "It was built without CONFIG_BPF_SYSCALL.", "use another kernel, or kernel UDP: --ia udp:ADDRESS", "")
	}
	return failure("bpf(2) is forbidden though the capabilities are there ("+strings.TrimSpace(err.Error())+")",
		forbidders,
		"run outside of it, or with --cap-add BPF,NET_ADMIN,NET_RAW and a seccomp profile that allows bpf", "")
}

func checkMemlock(_ context.Context, x *exam) []Finding {
	if len(lacks(x.caps, x.kernel)) > 0 {
		return nil // the command that gives the missing capabilities includes CAP_IPC_LOCK
	}
	if has(x.caps, unix.CAP_IPC_LOCK) {
		return ok("memory may be locked without limit (CAP_IPC_LOCK)")
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return warning("the limit of locked memory cannot be read: "+err.Error(), "",
			"look at it in the shell that starts the program", "ulimit -l")
	}
	queues, need, err := xdp.LockedMemory(x.name(), x.options())
	if err != nil {
		return nil // the check of the queues says so
	}
	return memlockFinding(limit.Cur, queues, uint64(need))
}

// options returns the options with which the adapter opens the interface.
func (x *exam) options() xdp.Options {
	o := xdp.DefaultOptions()
	o.Port, o.Queues, o.Mode = x.Port, x.maxQueues, xdp.Mode(cmp.Or(x.mode, string(xdp.Auto)))
	if o.Mode == xdp.Auto && x.features.known && !x.features.has(featureNative) {
		o.Mode = xdp.Generic
	}
	return o
}

// memlockFinding compares the limit of locked memory in bytes with what the queues need.
func memlockFinding(limit uint64, queues int, need uint64) []Finding {
	if limit >= need {
		return ok("%s of memory may be locked, %s are needed", mebibytes(limit), mebibytes(need))
	}
	return failure(fmt.Sprintf("only %s of memory may be locked, %s are needed for %s", mebibytes(limit), mebibytes(need), plural(queues, "queue")),
		"The frames of a queue are locked memory; AF_XDP is refused beyond the limit.",
		"raise it for this shell (a service: LimitMEMLOCK=infinity), or give the program CAP_IPC_LOCK",
		"sudo prlimit --pid $$ --memlock=unlimited:unlimited")
}

// checkMemoryLimit asks the code that opens the interface whether the memory of this process's control group suffices.
func checkMemoryLimit(_ context.Context, x *exam) []Finding {
	if err := xdp.CheckMemory(x.name(), x.options()); err != nil {
		return failure(strings.TrimPrefix(err.Error(), "xdp: "), "The adapter does not open.", "do what this says", "")
	}
	queues, need, err := xdp.LockedMemory(x.name(), x.options())
	if err != nil || xdp.MemoryLimitKnown() {
		return nil
	}
	return warning("the memory limit of this process is unknown: its control group is not in sight",
		fmt.Sprintf("The frames of %s take %s. If the container or the service may have less, the kernel kills the process while it opens.", plural(queues, "queue"), mebibytes(uint64(need))),
		"look at the limit from outside (memory.max, or memory.limit_in_bytes), or make the group visible here, as with", as("mount -t cgroup2 cgroup2 /sys/fs/cgroup"))
}

func mebibytes(n uint64) string {
	if n == unix.RLIM_INFINITY {
		return "any amount"
	}
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
