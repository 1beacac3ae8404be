package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Numbers of the kernel's interface that package syscall does not name.
const (
	afXDP          = 44 // AF_XDP of linux/socket.h
	rlimitMemlock  = 8  // RLIMIT_MEMLOCK of asm-generic/resource.h
	iflaXDP        = 43 // IFLA_XDP of linux/if_link.h, and what is nested in it:
	iflaXDPMode    = 2  // IFLA_XDP_ATTACHED
	iflaXDPProgram = 4  // IFLA_XDP_PROG_ID
	nestedFlag     = 1 << 15
)

// Capabilities that the adapter uses, as bits of CapEff.
const (
	capNetAdmin = 12
	capNetRaw   = 13
	capIPCLock  = 14
	capSysAdmin = 21
	capBPF      = 39
)

// umemBytes is the memory that one queue locks: the frames of package xdp's default options.
const umemBytes = 16 << 20

// examine looks at the host and at the interfaces named, or at all but loopback.
func examine(names []string, port uint16) ([]check, error) {
	ifis, err := chosenInterfaces(names)
	if err != nil {
		return nil, err
	}
	caps := effectiveCaps()
	checks := []check{
		kernelCheck(kernelRelease()),
		privilegeCheck(caps),
		socketCheck(),
		memlockCheck(caps),
		jitCheck(),
		coresCheck(),
		portCheck(port),
	}
	for _, ifi := range ifis {
		checks = append(checks, interfaceChecks(ifi)...)
	}
	return checks, nil
}

func chosenInterfaces(names []string) ([]net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var chosen []net.Interface
	for _, ifi := range all {
		if len(names) == 0 && ifi.Flags&net.FlagLoopback == 0 {
			chosen = append(chosen, ifi)
		}
	}
	for _, name := range names {
		ifi, err := net.InterfaceByName(name)
		if err != nil {
			return nil, unknownInterface(name, all)
		}
		chosen = append(chosen, *ifi)
	}
	return chosen, nil
}

func unknownInterface(name string, all []net.Interface) error {
	var have []string
	for _, ifi := range all {
		have = append(have, ifi.Name)
	}
	return fmt.Errorf("no interface %q; this host has %s", name, strings.Join(have, ", "))
}

func effectiveCaps() uint64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(b), "CapEff:")
	caps, err := strconv.ParseUint(strings.TrimSpace(strings.SplitN(after, "\n", 2)[0]), 16, 64)
	if err != nil {
		return 0
	}
	return caps
}

func has(caps uint64, bit uint) bool { return caps>>bit&1 != 0 }

func privilegeCheck(caps uint64) check {
	var missing []string
	for _, c := range []struct {
		name string
		have bool
	}{
		{"CAP_NET_ADMIN", has(caps, capNetAdmin)},
		{"CAP_NET_RAW", has(caps, capNetRaw)},
		{"CAP_BPF", has(caps, capBPF) || has(caps, capSysAdmin)},
	} {
		if !c.have {
			missing = append(missing, c.name)
		}
	}
	if len(missing) == 0 {
		return verdict("privilege", true, "enough for AF_XDP", "")
	}
	return verdict("privilege", false, "missing "+strings.Join(missing, ", "),
		"run as root, or setcap cap_net_admin,cap_net_raw,cap_bpf+ep on the program; udp: needs none")
}

// socketCheck makes an AF_XDP socket and closes it.
func socketCheck() check {
	fd, err := syscall.Socket(afXDP, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0)
	switch {
	case errors.Is(err, syscall.EPERM):
		return verdict("AF_XDP", false, "not permitted", "CAP_NET_RAW is needed to make the socket")
	case err != nil:
		return verdict("AF_XDP", false, err.Error(), "use a kernel with CONFIG_XDP_SOCKETS=y")
	}
	_ = syscall.Close(fd) // a socket that carried nothing
	return verdict("AF_XDP", true, "sockets can be made", "")
}

func memlockCheck(caps uint64) check {
	if has(caps, capIPCLock) {
		return verdict("locked memory", true, "no limit (CAP_IPC_LOCK)", "")
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(rlimitMemlock, &limit); err != nil {
		return advice("locked memory", false, err.Error(), "the limit could not be read")
	}
	return advice("locked memory", limit.Cur >= umemBytes, formatSize(int64(min(limit.Cur, 1<<62))),
		"ulimit -l unlimited: a queue locks up to "+formatSize(umemBytes))
}

func jitCheck() check {
	b, err := os.ReadFile("/proc/sys/net/core/bpf_jit_enable")
	if err != nil {
		return verdict("BPF JIT", true, "always on", "")
	}
	return advice("BPF JIT", strings.TrimSpace(string(b)) != "0", "bpf_jit_enable = "+strings.TrimSpace(string(b)),
		"sysctl net.core.bpf_jit_enable=1")
}

func coresCheck() check {
	return advice("cores", runtime.NumCPU() > 1, strconv.Itoa(runtime.NumCPU()),
		"a side that spins wants a core of its own")
}

// portCheck finds kernel sockets on our UDP port, without opening one.
func portCheck(port uint16) check {
	name := fmt.Sprintf("UDP port %d", port)
	for _, file := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		b, err := os.ReadFile(file)
		if err == nil && hasPort(b, port) {
			return advice(name, false, "in use ("+file+")",
				"stop what uses it, or choose another with --port on both hosts")
		}
	}
	return verdict(name, true, "free", "")
}

// hasPort looks through a table such as /proc/net/udp for a local port.
func hasPort(table []byte, port uint16) bool {
	want := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasSuffix(fields[1], want) {
			return true
		}
	}
	return false
}

func interfaceChecks(ifi net.Interface) []check {
	detail := fmt.Sprintf("%s, MTU %d, RX queues: %d", driver(ifi.Name), ifi.MTU, queues(ifi.Name))
	checks := []check{
		advice(ifi.Name, ifi.Flags&net.FlagUp != 0, detail, "it is down: bring it up"),
	}
	id, mode, err := attachedXDP(ifi.Index)
	switch {
	case err != nil:
		checks = append(checks, check{ifi.Name + " XDP", findingWarn, err.Error(), "it could not be asked for"})
	case id != 0:
		checks = append(checks, verdict(ifi.Name+" XDP", false, fmt.Sprintf("program %d is attached (%s)", id, mode),
			fmt.Sprintf("see bpftool prog show id %d; if nothing needs it: ip link set dev %s %s off", id, ifi.Name, mode)))
	default:
		checks = append(checks, verdict(ifi.Name+" XDP", true, "no program is attached", ""))
	}
	return checks
}

func driver(ifname string) string {
	target, err := os.Readlink(filepath.Join("/sys/class/net", ifname, "device/driver"))
	if err != nil {
		return "virtual"
	}
	return "driver " + filepath.Base(target)
}

func queues(ifname string) int {
	found, err := filepath.Glob(filepath.Join("/sys/class/net", ifname, "queues/rx-*"))
	if err != nil {
		return 0
	}
	return len(found)
}

// xdpModes are XDP_ATTACHED_* as ip-link(8) spells them.
var xdpModes = []string{"none", "xdpdrv", "xdpgeneric", "xdpoffload", "xdp"}

// attachedXDP asks which XDP program an interface has; 0 is none.
//
// System calls: socket, sendto and recvfrom on a routing netlink socket.
func attachedXDP(index int) (id uint32, mode string, err error) {
	dump, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return 0, "", err
	}
	messages, err := syscall.ParseNetlinkMessage(dump)
	if err != nil {
		return 0, "", err
	}
	for _, m := range messages {
		if m.Header.Type != syscall.RTM_NEWLINK || len(m.Data) < syscall.SizeofIfInfomsg {
			continue
		}
		if int32(binary.NativeEndian.Uint32(m.Data[4:])) == int32(index) {
			return parseXDP(attributes(m.Data[syscall.SizeofIfInfomsg:])[iflaXDP])
		}
	}
	return 0, "", fmt.Errorf("interface %d is gone", index)
}

func parseXDP(nested []byte) (id uint32, mode string, err error) {
	attrs := attributes(nested)
	if b := attrs[iflaXDPProgram]; len(b) >= 4 {
		id = binary.NativeEndian.Uint32(b)
	}
	mode = "xdp"
	if b := attrs[iflaXDPMode]; len(b) > 0 && int(b[0]) < len(xdpModes) {
		mode = xdpModes[b[0]]
	}
	return id, mode, nil
}

// attributes splits a run of netlink attributes. What is cut off is left out.
func attributes(b []byte) map[uint16][]byte {
	out := map[uint16][]byte{}
	for len(b) >= 4 {
		n := int(binary.NativeEndian.Uint16(b))
		kind := binary.NativeEndian.Uint16(b[2:]) &^ nestedFlag
		if n < 4 || n > len(b) {
			break
		}
		out[kind] = bytes.Clone(b[4:n])
		b = b[min((n+3)&^3, len(b)):]
	}
	return out
}
