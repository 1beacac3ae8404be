package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/procfs"
)

// holder is a process that holds a resource; the zero value is a process that is not visible.
type holder struct {
	pid     int
	command string
}

func (h holder) String() string {
	if h.pid == 0 {
		return "a process that is not visible from here"
	}
	return fmt.Sprintf("process %d (%s)", h.pid, printable(h.command))
}

func (h holder) self() bool { return h.pid == os.Getpid() }

// stop returns the command that ends the process; empty if the process is unknown.
func (h holder) stop() string {
	if h.pid == 0 {
		return ""
	}
	return as(fmt.Sprintf("kill %d", h.pid))
}

// hint says how to see more.
func (h holder) hint() string {
	if h.pid == 0 && os.Geteuid() != 0 {
		return " (root sees which)"
	}
	return ""
}

// socketHolder returns the process that has a socket open.
func socketHolder(ctx context.Context, inode uint64) holder {
	want := fmt.Sprintf("socket:[%d]", inode)
	return findHolder(ctx, func(_ procfs.Proc, _ int, target string) bool { return target == want })
}

// linkHolder returns the process that has a bpf_link open.
func linkHolder(ctx context.Context, id uint32) holder {
	want := fmt.Sprintf("link_id:\t%d\n", id)
	return findHolder(ctx, func(p procfs.Proc, fd int, target string) bool {
		if !strings.Contains(target, "bpf_link") {
			return false
		}
		info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", p.PID, fd)) // empty if the process has ended
		return strings.Contains(string(info), want)
	})
}

// findHolder searches the descriptors of every visible process, this one first.
func findHolder(ctx context.Context, is func(p procfs.Proc, fd int, target string) bool) holder {
	procs, err := procfs.AllProcs()
	if err != nil {
		return holder{}
	}
	if self, err := procfs.Self(); err == nil {
		procs = append(procfs.Procs{self}, procs...)
	}
	for _, p := range procs {
		if ctx.Err() != nil {
			break
		}
		if holds(p, is) {
			command, _ := p.Comm() // the name is optional
			return holder{p.PID, command}
		}
	}
	return holder{}
}

func holds(p procfs.Proc, is func(p procfs.Proc, fd int, target string) bool) bool {
	fds, err := p.FileDescriptors()
	if err != nil {
		return false
	}
	for _, fd := range fds {
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.PID, fd))
		if err == nil && is(p, int(fd), target) {
			return true
		}
	}
	return false
}

// udpTable returns every UDP socket of the network namespace.
func udpTable() (lines []udpLine) {
	fs, err := procfs.NewFS("/proc/thread-self") // its net directory shows the namespace of this thread
	if err != nil {
		return nil
	}
	v4, _ := fs.NetUDP()  // empty on an error
	v6, _ := fs.NetUDP6() // empty on an error, and on a kernel without IPv6
	for _, l := range append(v4, v6...) {
		lines = append(lines, udpLine{l.LocalAddr, l.LocalPort, l.Inode})
	}
	return lines
}
