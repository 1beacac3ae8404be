package doctor_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/xdp"
)

// TestDescriptors: the adapter opens with as many file descriptors as doctor asks for, and not with one less.
func TestDescriptors(t *testing.T) {
	labtest.RequireXDP(t)
	for queues, addresses := range map[int]int{1: 0, 2: 3, 6: 0} {
		l := labtest.New(t, lab.Options{Queues: queues})
		for i := range addresses {
			must(t, l.Do(lab.A, func() error {
				return labtest.AddAddress(lab.Interface, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 90, byte(i), 1}), 24))
			}))
		}
		for missing, want := range map[int]string{-5: "opened, doctor ok", 0: "opened, doctor warning", 1: "refused, doctor error"} {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenWithDescriptors$")
			cmd.Env = append(os.Environ(), "DOCTOR_MISSING="+strconv.Itoa(missing))
			var out labtest.Output
			cmd.Stdout, cmd.Stderr = &out, &out
			child, err := l.Start(lab.A, cmd)
			must(t, err)
			if err := child.Wait(); err != nil || !strings.Contains(out.String(), want) {
				t.Errorf("%d queues, %d more addresses, %d descriptors missing: %v, want %q in:\n%s", queues, addresses, missing, err, want, out.String())
			}
		}
	}
}

// TestOpenWithDescriptors is a process of TestDescriptors.
func TestOpenWithDescriptors(t *testing.T) {
	missing, err := strconv.Atoi(os.Getenv("DOCTOR_MISSING"))
	if err != nil {
		t.Skip("it is a process of TestDescriptors")
	}
	const ia = "xdp:veth0"
	open, err := dat.Open(ia, dat.DefaultOptions()) // opens what a process keeps, such as the network poller
	must(t, err)
	must(t, open.Close())
	least, _, err := xdp.Descriptors(lab.Interface, xdp.DefaultOptions())
	must(t, err)
	leaveDescriptors(t, least-missing)
	f := examine(t, ia, "descriptors")
	happens := "opened"
	open, err = dat.Open(ia, dat.DefaultOptions())
	switch {
	case errors.Is(err, dat.ErrInsufficientResources) && errors.Is(err, syscall.EMFILE):
		happens = "refused"
	case err != nil:
		t.Fatal(err)
	default:
		defer open.Close()
	}
	fmt.Printf("%s, doctor %v: %s\n", happens, f.Severity, f.Found)
}

// leaveDescriptors makes the process able to open n more files. It first waits until no more files are being closed.
func leaveDescriptors(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(all) - 1
	}
	for was, same := -1, 0; same < 20; time.Sleep(5 * time.Millisecond) {
		if now := count(); now == was {
			same++
		} else {
			was, same = now, 0
		}
	}
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	limit.Cur = 256
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	for free := int(limit.Cur) - count(); free > n; free-- {
		_, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		must(t, err)
	}
}
