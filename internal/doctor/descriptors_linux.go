package doctor

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/xdp"
)

// checkDescriptors compares the file descriptors that the adapter takes with those that this process may still open.
func checkDescriptors(_ context.Context, x *exam) []Finding {
	least, all, err := xdp.Descriptors(x.name(), x.options())
	if err != nil {
		return nil // the check of the queues says so
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return warning("the limit of open files cannot be read: "+err.Error(), "", "look at it in the shell that starts the program", "ulimit -n")
	}
	return descriptorFinding(limit.Cur, openFiles(), least, all)
}

// openFiles returns the number of open files of this process.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd") // empty on an error
	return max(0, len(entries)-1)             // one is the directory
}

func descriptorFinding(limit uint64, open, least, all int) []Finding {
	left := int(min(limit, 1<<30)) - open
	found := fmt.Sprintf("the adapter takes %d file descriptors, and this process may open %d more of %d", all, max(0, left), limit)
	const fix, command = "raise the limit: LimitNOFILE= of a service, --ulimit nofile= of a container, or in the shell", "ulimit -n 4096"
	switch {
	case left < least:
		return failure(found, fmt.Sprintf("The adapter does not open with less than %d.", least), fix, command)
	case left < all:
		return warning(found, "It opens without some sockets: it probes neighbours more slowly, and hears no ICMP.", fix, command)
	}
	return ok("%s", found)
}
