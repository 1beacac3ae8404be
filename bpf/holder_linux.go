//go:build amd64 || arm64

package bpf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
)

// holder is an XDP program on the interface. Fields that the kernel does not report are zero.
type holder struct {
	attached
	name    string
	pid     int
	command string
}

// Occupied returns nil if an interface of the calling thread's namespace has no XDP program. Otherwise it returns the
// error with which Attach would fail: one that wraps ErrBusy or ErrForeign and names the program.
//
// System calls: netlink RTM_GETLINK.
func Occupied(ifindex int) error {
	progs, err := queryAttached(ifindex)
	if err != nil || len(progs) == 0 {
		return err
	}
	return describe(progs[0]).refusal()
}

// occupied explains why the kernel reported the interface as busy.
func occupied(ifindex int, cause error) error {
	progs, err := queryAttached(ifindex)
	if err != nil {
		return fmt.Errorf("%w: who has it is unknown (%w): %w", ErrForeign, err, cause)
	}
	if len(progs) == 0 {
		// The program was detached in the meantime, or a bond or team above this interface has one.
		return fmt.Errorf("%w, or had until now, or a device above it has one: %w", ErrBusy, cause)
	}
	return fmt.Errorf("%w: %w", describe(progs[0]).refusal(), cause)
}

// refusal returns the error about an interface that has the program already.
func (h holder) refusal() error {
	if h.name == steerProgDatxdpSteer {
		return fmt.Errorf("%w, %s", ErrBusy, h)
	}
	return fmt.Errorf("%w, %s", ErrForeign, h)
}

func describe(a attached) holder {
	h := holder{attached: a, name: programName(a.id)}
	h.pid, h.command = owner(a.id)
	return h
}

func (h holder) String() string {
	name := "of unknown name (to read it takes CAP_SYS_ADMIN)"
	if h.name != "" {
		name = fmt.Sprintf("%q", h.name)
	}
	by := "by a process that is not visible, or none"
	if h.pid != 0 {
		by = fmt.Sprintf("by process %d (%s)", h.pid, h.command)
	}
	return fmt.Sprintf("program %d %s in %s mode, attached %s", h.id, name, h.mode, by)
}

// programName returns the name of a program. It needs CAP_SYS_ADMIN.
func programName(id uint32) string {
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return ""
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

// owner returns the process that holds the bpf_link of a program. It finds no process if the program has no link, if
// the link is pinned, or if the process is in another PID namespace.
func owner(id uint32) (pid int, command string) {
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0, ""
	}
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		if err != nil || !strings.Contains(target, "bpf_link") || !holdsProgram(fd, id) {
			continue
		}
		process := filepath.Dir(filepath.Dir(fd))
		if _, err := fmt.Sscanf(process, "/proc/%d", &pid); err != nil {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join(process, "comm")) // the name is optional
		return pid, strings.TrimSpace(string(comm))
	}
	return 0, ""
}

func holdsProgram(fd string, id uint32) bool {
	info, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(fd)), "fdinfo", filepath.Base(fd)))
	if err != nil {
		return false
	}
	want := fmt.Sprint("prog_id:", id)
	for line := range strings.Lines(string(info)) {
		if strings.Join(strings.Fields(line), "") == want {
			return true
		}
	}
	return false
}
