package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// version is a kernel version; zero if it could not be parsed.
type version struct{ major, minor int }

func (v version) atLeast(o version) bool {
	return v.major > o.major || v.major == o.major && v.minor >= o.minor
}

// oldest is the first supported kernel: it has bpf_link for XDP, and a wait on AF_XDP sockets that sleeps. frags is the
// first kernel with XDP programs for packets of several buffers.
var (
	oldest = version{5, 11}
	frags  = version{5, 18}
)

// gains are the improvements of newer kernels, oldest first.
var gains = []struct {
	since version
	what  string
}{
	{frags, "native mode at jumbo MTU"},
	{version{6, 6}, "packets of several frames (multi-buffer)"},
	{version{6, 17}, "a larger transmit budget"},
}

func runningKernel() version { return parseRelease(release()) }

func release() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "of unknown version"
	}
	return unix.ByteSliceToString(name.Release[:])
}

// parseRelease parses a release such as "6.18.44-generic".
func parseRelease(release string) (v version) {
	if _, err := fmt.Sscanf(release, "%d.%d", &v.major, &v.minor); err != nil {
		return version{}
	}
	return v
}

func checkKernel(context.Context, *exam) []Finding { return kernelFinding(release()) }

func kernelFinding(release string) []Finding {
	v := parseRelease(release)
	switch {
	case v == version{}:
		return warning("Linux "+release, "The version is not understood.", "make sure that it is Linux 5.11 or newer", "")
	case !v.atLeast(oldest):
		return failure("Linux "+release+" is too old for AF_XDP as it is used here", "It needs what came with Linux 5.11.",
			"use a newer kernel, or kernel UDP: --ia udp:ADDRESS", "")
	}
	var missing []string
	for _, g := range gains {
		if !v.atLeast(g.since) {
			missing = append(missing, fmt.Sprintf("%s comes with %d.%d", g.what, g.since.major, g.since.minor))
		}
	}
	if len(missing) > 0 {
		return info("Linux %s: AF_XDP; %s", release, strings.Join(missing, ", "))
	}
	return ok("Linux %s: AF_XDP, bpf_link, packets of several frames", release)
}

// checkAFXDP opens an AF_XDP socket and closes it.
//
// System calls: socket, close.
func checkAFXDP(_ context.Context, x *exam) []Finding {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd) // the socket carried nothing
	}
	return socketFinding(err, has(x.caps, unix.CAP_NET_RAW))
}

// socketFinding says what the result of socket(AF_XDP) means to a process with or without CAP_NET_RAW.
func socketFinding(err error, raw bool) []Finding {
	forbidden := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSYS)
	switch {
	case err == nil:
		return ok("AF_XDP sockets can be made")
	case forbidden && !raw:
		return nil // the capability check reports what is missing
	case forbidden:
		return failure("AF_XDP sockets are forbidden though the capability is there ("+err.Error()+")", forbidders,
			"run outside of it, or with a seccomp profile that allows sockets of AF_XDP (44), such as docs/seccomp.json", "")
	}
	return failure("the kernel has no AF_XDP sockets ("+err.Error()+")", "It was built without CONFIG_XDP_SOCKETS.",
		"use a kernel with CONFIG_XDP_SOCKETS=y, or kernel UDP: --ia udp:ADDRESS", "")
}

// forbidders are what can forbid a system call to a process that has the capabilities.
const forbidders = "A container, its seccomp profile, a user namespace or kernel lockdown forbids it."

// pseudoFile is a file of proc(5) or sysfs(5), with the command that mounts its file system.
type pseudoFile struct{ file, mount string }

// pseudoFiles are files without which AF_XDP does not open.
var pseudoFiles = []pseudoFile{
	{"proc/self/mountinfo", "mount -t proc proc /proc"},
	{"sys/devices/system/cpu/possible", "mount -t sysfs sysfs /sys"},
}

// checkMounts looks for the files of the kernel that opening the adapter reads: a chroot or a container may lack them.
func checkMounts(context.Context, *exam) (found []Finding) {
	for _, f := range missingFiles(os.DirFS("/")) {
		found = append(found, failure("there is no file /"+f.file+" of the kernel", "The XDP program cannot be loaded without it.",
			"mount it in this chroot or container", as(f.mount))...)
	}
	return found
}

// missingFiles returns those of pseudoFiles that cannot be read below root.
func missingFiles(root fs.FS) (missing []pseudoFile) {
	for _, f := range pseudoFiles {
		if _, err := fs.ReadFile(root, f.file); err != nil {
			missing = append(missing, f)
		}
	}
	return missing
}

// checkJIT reads the JIT setting. Kernels that always compile programs do not have it.
func checkJIT(context.Context, *exam) []Finding {
	if sysctl("net/core/bpf_jit_enable") == "0" {
		return warning("the BPF compiler is off", "Programs are interpreted for every packet: several times slower.",
			"switch it on", as("sysctl -w net.core.bpf_jit_enable=1"))
	}
	return ok("BPF programs are compiled; %s", btf())
}

func btf() string {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return "the kernel has no BTF, which is not needed"
	}
	return "the kernel has BTF"
}

// sysctl returns a kernel setting; empty if it does not exist or cannot be read.
func sysctl(name string) string { return readLine("/proc/sys/" + name) }

func readLine(path string) string {
	b, _ := os.ReadFile(path) // empty if the file does not exist
	return strings.TrimSpace(string(b))
}

func checkCPUs(context.Context, *exam) []Finding {
	n := runtime.NumCPU()
	if n < 2 {
		return warning("1 processor for this process", "A side that spins shares it with the kernel: round trips take milliseconds at times.",
			"give the process two or more", "")
	}
	if q, limited := cpuQuota(os.DirFS("/")); limited && q < 2 {
		return quotaFinding(q)
	}
	if slow := slowGovernors(); len(slow) > 0 {
		return warning(fmt.Sprintf("%s, %d of them governed by %q", plural(n, "processor"), len(slow), "powersave"),
			"The clock rises late: latencies are long and vary.", "let the clock stay high",
			as("cpupower frequency-set -g performance"))
	}
	return ok("%s", plural(n, "processor"))
}

// slowGovernors returns the processors whose clock is kept low. intel_pstate's "powersave" does not keep it low.
func slowGovernors() (slow []string) {
	files, _ := filepath.Glob("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor") // none in most VMs
	for _, f := range files {
		if readLine(f) == "powersave" && readLine(filepath.Join(filepath.Dir(f), "scaling_driver")) != "intel_pstate" {
			slow = append(slow, f)
		}
	}
	return slow
}
