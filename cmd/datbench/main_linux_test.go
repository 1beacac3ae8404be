package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/internal/result"
)

// asNobody makes cmd run without privilege, as the user nobody. The user may have no access to the directory of the
// test binary, so the binary is executed through a descriptor.
func asNobody(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exe.Close() }) // opened only for reading
	const nobody = 65534
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Path, cmd.Dir = "/proc/self/fd/3", "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// TestNotRoot: without privilege the main job runs over UDP and prints the reason. With --transport xdp it fails.
func TestNotRoot(t *testing.T) {
	cmd := program(t, "--duration", "50ms", "--warmup", "10ms", "--port", "17641", "--json", "-")
	asNobody(t, cmd)
	got := outcomeOf(t, cmd)
	r := checkReport(t, got, []byte(got.stdout))
	if diff := cmp.Diff(sorted(udpRows), rowNames(r, false)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	const why = "not root, so no AF_XDP"
	const says = "datbench: " + why + ": measuring over UDP between 127.0.0.1 and 127.0.0.2 instead\n"
	if !strings.HasPrefix(got.stderr, says) || r.Env.Fallback != why {
		t.Errorf("got fallback %q and\n%s", r.Env.Fallback, got.stderr)
	}
	for _, args := range [][]string{{"--transport", "xdp"}, {"raw"}, {"links"}, {"selftest", "--transport", "xdp"}} {
		cmd := program(t, args...)
		asNobody(t, cmd)
		got := outcomeOf(t, cmd)
		if want := "datbench: not root, so no AF_XDP: run as root"; got.code != exitUsage || got.lastLine() != want {
			t.Errorf("%v: exit %d, %q, want %d, %q", args, got.code, got.stderr, exitUsage, want)
		}
	}
	cmd = program(t, "server", "--ia", "xdp:lo")
	asNobody(t, cmd)
	got = outcomeOf(t, cmd)
	if want := "datbench: dat: opening xdp:lo: xdp: lo: needs root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF"; got.code != exitUsage || got.lastLine() != want {
		t.Errorf("server: exit %d, %q, want %d, %q", got.code, got.stderr, exitUsage, want)
	}
}

// interfaces returns the names of the interfaces of this namespace.
func interfaces(t *testing.T) (names []string) {
	t.Helper()
	ifis, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, ifi := range ifis {
		names = append(names, ifi.Name)
	}
	return names
}

// TestMainJobXDP runs the main job, shortened. It must measure every row and leave nothing behind.
func TestMainJobXDP(t *testing.T) {
	labtest.RequireXDP(t)
	before := interfaces(t)
	job := start(t, "--duration", "100ms", "--warmup", "20ms", "--json", "-")
	r := checkReport(t, job.wait(t), []byte(job.stdout.String()))
	if diff := cmp.Diff(sorted(slices.Concat(xdpRows, besideUDP)), rowNames(r, true)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for _, res := range r.Results {
		want := res.Mode
		switch {
		case res.OverUDP():
			want = "udp"
		case res.Op == result.TCP:
			want = "kernel"
		case res.Op == result.TCPShared || res.Transport == result.TransportXDP && !res.Baseline():
			want = "copy"
		}
		if res.Valid && res.Mode != want {
			t.Errorf("%s: mode %s, want %s", rowName(res, true), res.Mode, want)
		}
	}
	job.awaitGone(t)
	if diff := cmp.Diff(before, interfaces(t)); diff != "" {
		t.Errorf("interfaces (-before +after):\n%s", diff)
	}
}

// TestLinks: datbench links measures every link in the mode that it names, and prints a row for each.
func TestLinks(t *testing.T) {
	labtest.RequireXDP(t)
	path := t.TempDir() + "/links.json"
	got := datbench(t, "links", "--duration", "150ms", "--warmup", "10ms", "--json", path)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := checkReport(t, got, data)
	if want := 1 + 3*5; len(r.Results) != want {
		t.Errorf("got %d rows, want %d", len(r.Results), want)
	}
	for _, want := range []string{"\nxdp, copy ", "\nxdp, generic ", "\nudp ", "\nno adapter "} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
}

// TestSelftestXDP: the bytes arrive unchanged with every operation and at every MTU.
func TestSelftestXDP(t *testing.T) {
	labtest.RequireXDP(t)
	got := datbench(t, "selftest", "--transport", "xdp", "--bytes", "20MiB", "--mtu", "1500,9000,65000", "--json", "-")
	if r := checkReport(t, got, []byte(got.stdout)); len(r.Results) != 9 {
		t.Errorf("got %d rows, want 9", len(r.Results))
	}
}

// running is a running datbench. All its processes inherit the lifeline, a pipe that closes when the last one ends.
type running struct {
	cmd            *exec.Cmd
	stdout, stderr strings.Builder
	lines          chan string
	read           chan struct{}
	lifeline       *os.File
	done           chan error
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	return startCmd(t, program(t, args...))
}

func startCmd(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{cmd: cmd, lines: make(chan string, 1000), read: make(chan struct{}), done: make(chan error, 1)}
	lifeline, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lifeline = lifeline
	cmd.ExtraFiles = append(cmd.ExtraFiles, held)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = held.Close() // the child has its own descriptor
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if the process has ended
		_ = lifeline.Close()
	})
	var both sync.WaitGroup
	both.Go(func() { r.follow(stdout, &r.stdout) })
	both.Go(func() { r.follow(stderr, &r.stderr) })
	go func() { both.Wait(); close(r.read) }()
	return r
}

// follow records the lines of a stream and passes them on when they arrive.
func (r *running) follow(stream io.Reader, kept *strings.Builder) {
	for s := bufio.NewScanner(stream); s.Scan(); {
		kept.WriteString(s.Text() + "\n")
		select {
		case r.lines <- s.Text():
		default:
		}
	}
}

// awaitLine waits for a line that matches, on standard output or standard error.
func (r *running) awaitLine(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	timeout := time.After(limit)
	for {
		select {
		case line := <-r.lines:
			if m := re.FindStringSubmatch(line); m != nil {
				return m
			}
		case <-r.read:
			t.Fatalf("it ended without a line like %s", pattern)
		case <-timeout:
			t.Fatalf("no line like %s", pattern)
		}
	}
}

func (r *running) wait(t *testing.T) outcome {
	t.Helper()
	<-r.read
	_ = r.cmd.Wait() // the exit status is in ProcessState
	return outcome{r.stdout.String(), r.stderr.String(), r.cmd.ProcessState.ExitCode()}
}

// awaitGone waits for the end of the last process; the lifeline then closes.
func (r *running) awaitGone(t *testing.T) {
	t.Helper()
	if err := r.lifeline.SetReadDeadline(time.Now().Add(cleanupLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.lifeline.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("processes are left behind: %v", err)
	}
}

// TestServerAndRun runs a server and a client as separate processes in the two namespaces of a lab.
func TestServerAndRun(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	labtest.RequireXDP(t)
	server := serve(t, l, "--ia", "xdp:"+lab.Interface)
	client := inLab(t, l, lab.B, "run", lab.A.Addr4().String(), "--ia", "xdp:"+lab.Interface, "--op", "send,write,read",
		"--metric", "lat,rate,bw,sha256", "--duration", "100ms", "--warmup", "10ms", "--bytes", "10MiB", "--json", "-")
	r := checkReport(t, client.wait(t), []byte(client.stdout.String()))
	want := product([]string{"lat", "rate", "bw", "sha256"}, []string{"send", "write", "read"}, " 1500")
	if diff := cmp.Diff(sorted(want), rowNames(r, true)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	got := server.wait(t)
	if got.code != exitValid || strings.Count(got.stdout, ": served in ") != len(want) {
		t.Errorf("server: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// TestServerErrors: a server that cannot start prints one line that names the busy resource.
func TestServerErrors(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	labtest.RequireXDP(t)
	serve(t, l, "--ia", "xdp:"+lab.Interface)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"another server", []string{"server", "--ia", "xdp:veth0"},
			`datbench: dat: opening xdp:veth0: xdp: veth0: interface (is busy|has a foreign XDP program).*: (detach it|stop that program), .*`},
		{"XDP program there", []string{"server", "--ia", "xdp:veth0", "--port", "17500"},
			`datbench: dat: opening xdp:veth0: xdp: .*veth0.*: (detach it|stop that program), .*`},
		{"unknown interface", []string{"server", "--ia", "xdp:nope0"},
			`datbench: dat: opening xdp:nope0: xdp: no interface "nope0": choose one of .*`},
		{"nobody there", []string{"run", "10.73.0.9", "--ia", "udp:10.73.0.1", "--port", "17501"},
			`datbench: 10.73.0.9 (did not answer|cannot be reached): start "datbench server" on it, with UDP port 17501 open between the hosts`},
		{"no such mode", []string{"server", "--ia", "xdp:veth0,zero-copy", "--port", "17502"}, `datbench: dat: opening xdp:veth0,zero-copy: xdp: .*`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := inLab(t, l, lab.A, tt.args...).wait(t)
			if got.code != exitUsage || !regexp.MustCompile("^"+tt.want+"$").MatchString(got.lastLine()) {
				t.Errorf("got exit %d\n%s\nwant exit %d\n%s", got.code, got.lastLine(), exitUsage, tt.want)
			}
		})
	}
}

// serve starts a server at end A and waits until it accepts requests.
func serve(t *testing.T, l *lab.Lab, args ...string) *running {
	t.Helper()
	server := inLab(t, l, lab.A, append([]string{"server"}, args...)...)
	server.awaitLine(t, "^serving on ")
	return server
}

// inLab starts datbench in the namespace of one end. It forks on the thread that Do has moved there.
func inLab(t *testing.T, l *lab.Lab, s lab.Side, args ...string) (r *running) {
	t.Helper()
	if err := l.Do(s, func() error { r = start(t, args...); return nil }); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMetrics: an agent serves Prometheus metrics while the main job runs.
func TestMetrics(t *testing.T) {
	job := start(t, "--transport", "udp", "--duration", "2s", "--port", "17643", "--op", "send", "--metric", "rate",
		"--metrics", "127.0.0.1:0")
	url := job.awaitLine(t, `metrics on (http://\S+)`)[1]
	job.awaitLine(t, "message rate send")
	for deadline := time.Now().Add(limit); ; {
		if body := scrape(t, url); strings.Contains(body, "datxdp_transmit_bytes_total{") && strings.Contains(body, `mode="udp"`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the adapter is not shown")
		}
	}
	if got := job.wait(t); got.code == exitUsage {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // the body has been read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
