package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/datxdp/datxdp/internal/lease"
)

// roleVariable makes the test program a daemon that systemd activates.
const roleVariable = "DATXDP_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		os.Setenv("LISTEN_PID", fmt.Sprint(os.Getpid())) // what systemd does between fork and exec
		ctx, stop := context.WithCancel(context.Background())
		go func() { _, _ = os.Stdin.Read(make([]byte, 1)); stop() }()
		if err := Run(ctx, Config{Kernel: pipes{}, Interfaces: []string{"eth0"}, Allow: allow(), Log: slog.New(slog.DiscardHandler)}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// pipes makes leases of pipes.
type pipes struct{}

func (pipes) Check(context.Context, string, lease.Mode) error { return nil }

func (pipes) Lease(_ context.Context, r lease.Request, _ lease.Holder, _ lease.Limits) (*lease.Grant, error) {
	a, b, err := os.Pipe()
	return &lease.Grant{ID: 1, Interface: r.Interface, Mode: r.Mode, Sockets: []*os.File{a}, UMEMs: []*os.File{b}}, err
}
func (pipes) Adopt(context.Context, uint32, lease.Holder) (*lease.Grant, error) {
	return nil, lease.ErrNoLease
}
func (pipes) Release(uint32) error        { return nil }
func (pipes) Listen(uint32, uint64) error { return nil }
func (pipes) Unlisten(uint32, uint64)     {}
func (pipes) Route(uint32, netip.Addr) (lease.Route, error) {
	return lease.Route{}, lease.ErrNoRoute
}
func (pipes) Sweep() ([]lease.Held, error) { return nil, nil }
func (pipes) Close() error                 { return nil }

func allow() []string { return []string{fmt.Sprintf("user:%d", os.Getuid())} }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// borrow takes a lease and gives it back.
func borrow(path string) error {
	c, err := lease.Dial(path)
	if err != nil {
		return err
	}
	defer c.Close()
	g, err := c.Lease(lease.Request{Interface: "eth0", Mode: lease.Shared})
	if err == nil {
		g.Close()
	}
	return err
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after 20 s", what)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	check(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	check(t, err)
	http.DefaultClient.CloseIdleConnections()
	return string(b)
}

// A daemon tells systemd that it is ready, serves leases and pages, and reads its policy again. A faulty policy does not
// replace the one before.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	states, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	check(t, err)
	defer states.Close()
	t.Setenv("NOTIFY_SOCKET", states.LocalAddr().String())
	file, path := filepath.Join(dir, "policy"), filepath.Join(dir, "s")
	write := func(text string) { check(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(allow()[0])
	m, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	reload := make(chan os.Signal)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		err = Run(ctx, Config{Kernel: pipes{}, Interfaces: []string{"eth0"}, PolicyFile: file, Socket: path, Metrics: m,
			Log: slog.New(slog.DiscardHandler), Reload: reload})
	})
	wantState(t, states, "READY=1")
	check(t, borrow(path))
	write("user:54321")
	reload <- os.Interrupt
	until(t, "the new policy", func() bool { return borrow(path) != nil })
	if err := borrow(path); !errors.Is(err, lease.ErrDenied) {
		t.Error(err)
	}
	write("nonsense")
	reload <- os.Interrupt
	write(allow()[0])
	reload <- os.Interrupt
	until(t, "the old policy", func() bool { return borrow(path) == nil })
	url := "http://" + m.Addr().String()
	if page := get(t, url+"/metrics"); !strings.Contains(page, `datxdpd_refused_total{reason="denied"}`) || !strings.Contains(page, "datxdpd_granted_total ") {
		t.Error(page)
	}
	if got := get(t, url+"/healthz"); got != "ok\n" {
		t.Errorf("/healthz: %q", got)
	}
	stop()
	running.Wait()
	check(t, err)
	wantState(t, states, "STOPPING=1")
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left")
	}
}

func wantState(t *testing.T, c *net.UnixConn, want string) {
	t.Helper()
	b := make([]byte, 100)
	check(t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
	n, err := c.Read(b)
	check(t, err)
	if string(b[:n]) != want {
		t.Errorf("systemd is told %q, want %q", b[:n], want)
	}
}

// A daemon that systemd activates serves systemd's socket, and leaves it when it ends.
func TestActivation(t *testing.T) {
	for network, want := range map[string]string{"unixpacket": "", "unix": "ListenSequentialPacket="} {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
		check(t, err)
		f, err := l.File()
		check(t, err)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), roleVariable+"=1", "LISTEN_FDS=1")
		cmd.ExtraFiles = []*os.File{f}
		var errs strings.Builder
		cmd.Stderr = &errs
		end, err := cmd.StdinPipe()
		check(t, err)
		check(t, cmd.Start())
		f.Close()
		if want == "" {
			check(t, borrow(path)) // waits in the backlog until the daemon runs
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		}
		end.Close()
		if err := cmd.Wait(); (err == nil) != (want == "") || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: %v, %s", network, err, errs.String())
		}
		l.Close()
	}
}

// A daemon without a rule does not start.
func TestNoPolicy(t *testing.T) {
	for want, c := range map[string]Config{
		"allows nothing":   {},
		"no such file":     {PolicyFile: "/nonexistent/policy"},
		`--allow "nobody"`: {Allow: []string{"nobody"}},
	} {
		if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
