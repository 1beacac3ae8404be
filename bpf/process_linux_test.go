//go:build amd64 || arm64

package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// roleVar is the variable that makes the test binary run as a helper process of a test.
const roleVar = "DATXDP_BPF_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "attacher":
		if err := attachAndHold(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "idle":
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// attachAndHold waits for a line, attaches the program, reports this, and then waits to be killed.
func attachAndHold() error {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	s, err := Attach(labOptions(Auto))
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("attached")
	_, err = io.Copy(io.Discard, in)
	return err
}

// peer is a helper process in its own network namespace.
type peer struct {
	*lab.Child
	in  io.Writer
	out *bufio.Reader
}

func startPeer(t *testing.T, role string) peer {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child, err := lab.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Kill)
	return peer{child, in, bufio.NewReader(out)}
}

// TestKill attaches the program in another process. An attempt to attach a second program then fails and names the
// process. When the process is killed, its program is detached.
func TestKill(t *testing.T) {
	labtest.RequireXDP(t)
	attacher, idle := startPeer(t, "attacher"), startPeer(t, "idle")
	l, err := lab.Join(attacher.Pid(), idle.Pid(), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if _, err := io.WriteString(attacher.in, "attach\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := attacher.out.ReadString('\n'); err != nil || line != "attached\n" {
		t.Fatalf("attacher: got %q, %v", line, err)
	}

	_, err = attachIn(l, labOptions(Auto))
	want := fmt.Sprintf("attached by process %d (", attacher.Pid())
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), want) {
		t.Errorf("while it lives: got %v, want %v and %q in it", err, ErrBusy, want)
	}

	attacher.Kill()
	awaitDetached(t, l)
	mustAttach(t, l, labOptions(Auto))
}

// awaitDetached waits until the kernel has released the link of a dead process. It polls, because some kernels do this
// in the background and none reports it.
func awaitDetached(t *testing.T, l *lab.Lab) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		progs := programs(t, l)
		if len(progs) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still attached after the process was killed: %+v", progs)
		}
	}
}

func TestPrivilege(t *testing.T) {
	l := newLab(t, lab.Options{})
	// The ebpf library probes once per process whether programs can have names. If the first probe lacked a privilege,
	// the library would conclude that the kernel has no names, and later tests would not find their programs by name.
	if err := mustAttach(t, l, labOptions(Auto)).Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		caps []uint
		want error
	}{
		{"none", nil, ErrPrivilege},
		{"CAP_BPF alone", []uint{labtest.CapBPF}, ErrPrivilege},
		{"CAP_NET_ADMIN alone", []uint{labtest.CapNetAdmin}, ErrPrivilege},
		{"CAP_BPF and CAP_NET_ADMIN", []uint{labtest.CapBPF, labtest.CapNetAdmin}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s *Steer
			var err error
			inside(t, l, func() {
				labtest.WithCaps(t, tt.caps, func() { s, err = Attach(labOptions(Auto)) })
			})
			if s != nil {
				defer s.Close()
			}
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err == nil && s.Mode() != Native {
				t.Errorf("mode: got %s, want %s", s.Mode(), Native)
			}
		})
	}
}

// TestVerifierPrivilege loads the program with and without CAP_PERFMON. Without it, the verifier forbids operations
// that could reveal addresses of the kernel.
func TestVerifierPrivilege(t *testing.T) {
	labtest.RequireXDP(t)
	for _, tt := range []struct {
		multiBuffer, perfmon bool
		want                 error
	}{
		{true, false, nil},
		{true, true, nil},
		{false, false, ErrPrivilege},
		{false, true, nil},
	} {
		caps := []uint{labtest.CapBPF, labtest.CapNetAdmin}
		if tt.perfmon {
			caps = append(caps, labtest.CapPerfmon)
		}
		labtest.WithCaps(t, caps, func() {
			objs, err := loadWith(testOptions(), tt.multiBuffer)
			if !errors.Is(err, tt.want) {
				t.Errorf("%+v: got %v", tt, err)
			}
			if err == nil {
				defer objs.Close()
			}
		})
	}
}

// TestForeignWithoutName: a foreign program is refused even if its name cannot be read.
func TestForeignWithoutName(t *testing.T) {
	l := newLab(t, lab.Options{})
	attachForeign(t, l, "someone_else", Native)
	var err error
	inside(t, l, func() {
		labtest.WithCaps(t, []uint{labtest.CapBPF, labtest.CapNetAdmin}, func() { _, err = Attach(labOptions(Auto)) })
	})
	if want := fmt.Sprintf("program %d of unknown name", programs(t, l)[0].id); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %v and %q in it", err, ErrForeign, want)
	}
}

// inside runs fn in the namespace of side A.
func inside(t *testing.T, l *lab.Lab, fn func()) {
	t.Helper()
	if err := l.Do(lab.A, func() error { fn(); return nil }); err != nil {
		t.Fatal(err)
	}
}

// TestDescriptors attaches, and fails to attach in every way, and checks that no descriptor leaks.
func TestDescriptors(t *testing.T) {
	l := newLab(t, lab.Options{})
	attempt := func() {
		s, err := attachIn(l, labOptions(Auto))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := attachIn(l, labOptions(Generic)); !errors.Is(err, ErrBusy) {
			t.Fatalf("got %v, want %v", err, ErrBusy)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	attempt() // opens what is opened once per process
	before := descriptors(t)
	for range 20 {
		attempt()
	}
	if got := descriptors(t); got != before {
		t.Errorf("open descriptors: got %d, want %d", got, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}
