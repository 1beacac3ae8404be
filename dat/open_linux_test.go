package dat

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

const nobody = 65534

// Environment variables of a child process: nameVar is the name of the adapter that it opens, portVar the port.
const (
	nameVar = "DATXDP_TEST_ADAPTER"
	portVar = "DATXDP_TEST_PORT"
)

func init() {
	roles["open"] = openAndHold
}

// child is a process that runs the test binary in a role.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a child in the namespace of a side. The child is killed at the end of the test.
func (x xdpNet) start(t *testing.T, side lab.Side, role, name string, uid uint32) child {
	t.Helper()
	return startChild(t, role, name, 0, uid, func(start func() error) error { return x.Do(side, start) })
}

func startChild(t testing.TB, role, name string, port int, uid uint32, within func(func() error) error) child {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVar+"="+role, nameVar+"="+name, fmt.Sprintf("%s=%d", portVar, port))
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	in := must(cmd.StdinPipe())(t)
	out := must(cmd.StdoutPipe())(t)
	ok(t, within(cmd.Start))
	c := child{cmd, in, bufio.NewReader(out)}
	t.Cleanup(c.kill)
	return c
}

func (c child) kill() {
	if c.ProcessState == nil {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// says returns the next line that the child writes.
func (c child) says(t testing.TB) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("child: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func childOptions() (name string, o Options) {
	_, _ = fmt.Sscan(os.Getenv(portVar), &o.Port)
	return os.Getenv(nameVar), o
}

// openAndHold opens an adapter, writes the result, and keeps the adapter open until its standard input ends.
func openAndHold() error {
	name, o := childOptions()
	ia, err := Open(name, o)
	if err != nil {
		_, err = fmt.Printf("privilege %v: %v\n", errors.Is(err, ErrPrivilegesViolation), err)
		return err
	}
	attr, err := ia.Query()
	if err != nil {
		return err
	}
	fmt.Println("opened", attr.Mode)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return ia.CloseWith(CloseGraceful)
}

func TestOpenUnknownInterface(t *testing.T) {
	x := newXDP(t).(xdpNet)
	for _, name := range []string{"xdp:nosuch0", "auto:nosuch0"} {
		err := x.Do(lab.A, func() error {
			_, err := Open(name, Options{})
			return err
		})
		explains(t, name, err, ErrProviderNotFound)
	}
	err := x.Do(lab.A, func() error {
		_, err := Open("xdp:veth0,warp", Options{})
		return err
	})
	explains(t, "xdp:veth0,warp", err, ErrInvalidParameter)
}

func TestOpenWithoutPrivilege(t *testing.T) {
	x := newXDP(t).(xdpNet)
	said := x.start(t, lab.A, "open", "xdp:veth0", nobody).says(t)
	t.Log(said)
	if !strings.HasPrefix(said, "privilege true: ") || !strings.Contains(said, "needs root") {
		t.Errorf("got %q", said)
	}
	for _, name := range []string{"auto:veth0", "udp:10.73.0.1"} {
		c := x.start(t, lab.A, "open", name, nobody)
		if said := c.says(t); said != "opened udp" {
			t.Errorf("%s: %s", name, said)
		}
		c.kill()
	}
	if said := x.start(t, lab.A, "open", "auto:veth0,copy", nobody).says(t); !strings.HasPrefix(said, "privilege true: ") {
		t.Errorf("a mode that was named was replaced: %s", said)
	}
}

func TestOpenBusy(t *testing.T) {
	x := newXDP(t).(xdpNet)
	holder := x.start(t, lab.A, "open", "xdp:veth0", 0)
	if said := holder.says(t); !strings.HasPrefix(said, "opened ") {
		t.Fatal(said)
	}
	for _, port := range []uint16{0, 17474} {
		_, err := x.open(0, Options{Port: port})
		explains(t, "xdp:veth0", err, ErrInsufficientResources)
		wants(t, "link error", err, link.ErrBusy)
		if port != 0 && err != nil && !strings.Contains(err.Error(), fmt.Sprint(holder.Process.Pid)) {
			t.Errorf("the holder, process %d, is not named", holder.Process.Pid)
		}
	}
	// If both AF_XDP and UDP fail, the error has both reasons, and no fallback is logged.
	var log bytes.Buffer
	ok(t, x.Do(lab.A, func() error {
		_, err := Open("auto:veth0", Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		explains(t, "auto:veth0", err, ErrInsufficientResources, "udplink: ", "AF_XDP is unavailable too: xdp: ")
		return nil
	}))
	if log.Len() > 0 {
		t.Errorf("the log says %s", &log)
	}
	ok(t, holder.Process.Kill())
	_ = holder.Wait()
	var ia *IA
	eventually(t, "the interface to be free", func() (free bool) {
		var err error
		ia, err = x.open(0, Options{})
		return err == nil
	})
	ok(t, ia.CloseWith(CloseGraceful))
}

// A second adapter on the same interface cannot be opened, and the first continues to work.
func TestOpenBusyInThisProcess(t *testing.T) {
	n := newXDP(t)
	a, b := newHosts(t, n, Options{})
	x, y := pair(a, b, nil)
	_, err := n.open(0, Options{Port: 17474})
	explains(t, "xdp:veth0", err, ErrInsufficientResources, "this process has the interface open", "port=17473")
	wants(t, "link error", err, link.ErrBusy)
	proves(x, y)
}

// The names of an interface are one adapter, if they permit its mode.
func TestOpenByAnotherName(t *testing.T) {
	n := newXDP(t).(xdpNet)
	open := func(name string) (ia *IA, err error) {
		ok(t, n.Do(lab.A, func() error { ia, err = Open(name, Options{}); return nil }))
		return ia, err
	}
	first, err := open("auto:veth0")
	ok(t, err)
	defer first.Close()
	for _, name := range []string{"xdp:veth0", "xdp:veth0,copy", "auto:veth0,copy", "xdp:veth0 port=17473"} {
		ia, err := open(name)
		if err != nil || ia.a != first.a {
			t.Errorf("%s is another adapter: %v", name, err)
			continue
		}
		ok(t, ia.Close())
	}
	_, err = open("xdp:veth0,generic")
	explains(t, "xdp:veth0,generic", err, ErrInsufficientResources, "auto:veth0 port=17473", "copy mode")
}

func TestForeignProgram(t *testing.T) {
	x := xdpNet{labtest.New(t, lab.Options{})}
	var held *labtest.Program
	ok(t, x.Do(lab.A, func() (err error) {
		held, err = labtest.AttachProgram(lab.Interface, false)
		return err
	}))
	defer held.Close()
	for _, name := range []string{"xdp:veth0", "xdp:veth0,generic"} {
		err := x.Do(lab.A, func() error {
			_, err := Open(name, Options{})
			return err
		})
		explains(t, name, err, ErrInsufficientResources, labtest.ProgramName)
	}
	ok(t, x.Do(lab.A, func() error {
		if id, err := labtest.ProgramOn(lab.Interface); err != nil || id == 0 {
			t.Errorf("the foreign program is gone: %v", err)
		}
		return nil
	}))
	ok(t, held.Close())
	a, b := newHosts(t, x, Options{})
	u, v := pair(a, b, nil)
	proves(u, v)
	// The adapters close before their lab does: cleanups run last in, first out.
}
