package lab_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// roleVar is the variable that makes the test binary run as a helper process of a test.
const roleVar = "DATXDP_LAB_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "holder":
		if err := hold(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "child":
		awaitEOF()
	}
}

func role(name string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVar+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

func awaitEOF() { _, _ = io.Copy(io.Discard, os.Stdin) }

// hold creates one lab of each kind, reports its children and waits until it is killed.
func hold() error {
	own, err := lab.New(lab.Options{})
	if err != nil {
		return err
	}
	defer own.Close()
	inOwn := func(cmd *exec.Cmd) (*lab.Child, error) { return own.Start(lab.A, cmd) }
	var pids [3]int
	for i, start := range []func(*exec.Cmd) (*lab.Child, error){lab.Start, lab.Start, inOwn} {
		cmd := role("child")
		// This process keeps the write end open, so the children do not see an end of file.
		if _, err := cmd.StdinPipe(); err != nil {
			return err
		}
		child, err := start(cmd)
		if err != nil {
			return err
		}
		pids[i] = child.Pid()
	}
	joined, err := lab.Join(pids[0], pids[1], lab.Options{Queues: 2})
	if err != nil {
		return err
	}
	defer joined.Close()
	fmt.Println(pids[0], pids[1], pids[2])
	awaitEOF()
	return nil
}

// TestKillLeavesNothing kills a process that holds labs and children. It then waits for the events that report the end
// of its children and of its namespaces, including their interfaces.
func TestKillLeavesNothing(t *testing.T) {
	witness := newWitness(t)
	holder := role("holder")
	_, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })

	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("holder: %v", err)
	}
	children := processes(t, strings.Fields(line))
	namespaces := witness.watch(t, holder.Process.Pid)
	if want := 4; namespaces != want {
		t.Fatalf("holder has %d namespaces, want %d", namespaces, want)
	}

	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for _, c := range children {
		c.awaitDeath(t, deadline)
	}
	witness.awaitGone(t, namespaces, deadline)
}

// process is watched through a pidfd, which cannot refer to another process later.
type process struct {
	pid string
	fd  int
}

func processes(t *testing.T, pids []string) (watched []process) {
	t.Helper()
	for _, pid := range pids {
		var n int
		if _, err := fmt.Sscan(pid, &n); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(n, 0)
		if err != nil {
			t.Fatalf("pidfd_open %d: %v", n, err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		watched = append(watched, process{pid, fd})
	}
	return watched
}

// awaitDeath polls the pidfd: it becomes readable when the process has ended.
func (p process) awaitDeath(t *testing.T, deadline time.Time) {
	t.Helper()
	for {
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(time.Until(deadline).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != 1 {
			t.Fatalf("child %s is alive after its parent was killed: %v", p.pid, err)
		}
		return
	}
}

// witness is a namespace in which other namespaces have numbers. The kernel reports there when one of them ends.
type witness struct {
	*lab.Lab
	handle *netlink.Handle
	events *nl.NetlinkSocket
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{Lab: labtest.New(t, lab.Options{})}
	err := w.Do(lab.A, func() (err error) {
		if w.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return err
		}
		w.events, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_NSID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.handle.Close(); w.events.Close() })
	return w
}

// firstID is above the numbers that the kernel itself assigns to the namespace of a veth's peer.
const firstID = 1000

// watch gives a number to every foreign network namespace that a process holds by a descriptor, starting with firstID.
// It returns the number of these namespaces.
func (w *witness) watch(t *testing.T, pid int) int {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{namespace(t): true}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(target, "net:[") || seen[target] {
			continue
		}
		seen[target] = true
		ns, err := os.Open(link)
		if err != nil {
			t.Fatal(err)
		}
		err = w.handle.SetNetNsIdByFd(int(ns.Fd()), firstID+len(seen)-2)
		if err := errors.Join(err, ns.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return len(seen) - 1
}

// awaitGone waits until every numbered namespace is destroyed. The kernel reports this by an event, because it then
// deletes the number.
func (w *witness) awaitGone(t *testing.T, namespaces int, deadline time.Time) {
	t.Helper()
	timeout := unix.NsecToTimeval(int64(time.Until(deadline)))
	if err := w.events.SetReceiveTimeout(&timeout); err != nil {
		t.Fatal(err)
	}
	alive := map[int32]bool{}
	for id := range namespaces {
		alive[int32(firstID+id)] = true
	}
	for len(alive) > 0 {
		messages, _, err := w.events.Receive()
		if err != nil {
			t.Fatalf("namespaces %v are alive after their holder was killed: %v", alive, err)
		}
		for _, m := range messages {
			// struct rtgenmsg padded to 4 bytes, then the attribute NETNSA_NSID.
			if m.Header.Type == unix.RTM_DELNSID && len(m.Data) >= 12 {
				delete(alive, int32(binary.NativeEndian.Uint32(m.Data[8:])))
			}
		}
	}
}

// TestChild follows a child from its start to its end.
func TestChild(t *testing.T) {
	labtest.RequireRoot(t)
	cmd := role("child")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	child, err := lab.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", child.Pid()))
	if err != nil || theirs == namespace(t) {
		t.Errorf("namespace of the child: got %s, %v, want one of its own", theirs, err)
	}
	if err := errors.Join(stdin.Close(), child.Wait(), child.Wait()); err != nil {
		t.Error(err)
	}
	child.Kill()
}

// TestStartInLab: a child runs in the namespace of the end in which it was started.
func TestStartInLab(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	for _, s := range []lab.Side{lab.A, lab.B} {
		cmd := role("child")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		child, err := l.Start(s, cmd)
		if err != nil {
			t.Fatal(err)
		}
		do(t, l, s, func() {
			got, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", child.Pid()))
			if want := namespace(t); err != nil || got != want {
				t.Errorf("end %s: got %s, %v, want %s", s, got, err, want)
			}
		})
		if err := errors.Join(stdin.Close(), child.Wait()); err != nil {
			t.Error(err)
		}
	}
}

func TestStartFails(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	inLab := func(cmd *exec.Cmd) (*lab.Child, error) { return l.Start(lab.B, cmd) }
	for _, start := range []func(*exec.Cmd) (*lab.Child, error){lab.Start, inLab} {
		if _, err := start(exec.Command("/nonexistent/program")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want %v", err, os.ErrNotExist)
		}
	}
}

func TestJoinFails(t *testing.T) {
	labtest.RequireRoot(t)
	before := interfaces(t)
	for name, pid := range map[string]int{"no such process": 1 << 30, "own namespace": os.Getpid()} {
		descriptorsBefore := descriptors(t)
		cmd := role("child")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		child, err := lab.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		for _, pids := range [][2]int{{child.Pid(), pid}, {pid, child.Pid()}} {
			if _, err := lab.Join(pids[0], pids[1], lab.Options{}); err == nil {
				t.Errorf("%s: joined", name)
			}
		}
		stdin.Close()
		child.Kill()
		if got := descriptors(t); got != descriptorsBefore {
			t.Errorf("%s: open descriptors: got %d, want %d", name, got, descriptorsBefore)
		}
	}
	if got := interfaces(t); got != before {
		t.Errorf("interfaces outside the lab: got %s, want %s", got, before)
	}
}
