package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// patience limits every wait. Nothing takes nearly as long.
const patience = 3 * time.Minute

// tools are programs that a host may not have. A block that needs a missing tool is skipped. tools/deps.sh installs
// them.
var tools = []string{"bpftool", "ethtool", "getcap", "ip", "ping", "setcap", "ss", "systemd-analyze"}

// TestCommands runs the commands of every document, or with -short those of the examples.
func TestCommands(t *testing.T) {
	w := newWorld(t)
	if !testing.Short() {
		w.buildDatbench(t)
	}
	skipped := 0
	for _, b := range blocks(t, "sh") {
		p, err := parseMarker(b.marker)
		if err != nil || !p.runs() || testing.Short() && !b.ofExample() {
			continue // TestPlaces and TestSyntax check what is never run
		}
		if p.kind != "host" && w.copy == "" {
			skipped++
			continue
		}
		t.Run(b.String(), func(t *testing.T) {
			needTools(t, b.text)
			w.run(t, b, p)
		})
	}
	t.Run("capabilities", func(t *testing.T) {
		if skipped > 0 {
			t.Skipf("this and %d blocks of commands of the documents need root", skipped)
		}
		if testing.Short() {
			t.Skip("make documents, a part of make test-all, runs this and the commands of the other documents")
		}
		labtest.RequireXDP(t)
		testCapabilities(t, w)
	})
}

func needTools(t *testing.T, text string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil && regexp.MustCompile(`\b`+tool+` `).MatchString(text) {
			t.Skipf("no %s: make deps installs it as root", tool)
		}
	}
}

// world has copies of the directories that the commands may change.
type world struct {
	repository string // the real directory
	copy       string // empty without root: commands then run in the real directory, and may change only bin
	etc, local string // copies of /etc and /usr/local/bin
}

func newWorld(t *testing.T) *world {
	t.Helper()
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{repository: repository}
	if os.Geteuid() == 0 {
		dir := t.TempDir()
		w.copy, w.etc, w.local = dir+"/copy", dir+"/etc", dir+"/local"
		sh(t, fmt.Sprintf("mkdir %s %s; find . -path ./.git -prune -o -path ./bin -prune -o -type f -print0 | xargs -0 cp --parents -t %[1]s; cp -a /etc %[3]s",
			w.copy, w.local, w.etc), repository)
	}
	return w
}

// buildDatbench builds bin/datbench, which the examples do not need.
func (w *world) buildDatbench(t *testing.T) {
	t.Helper()
	sh(t, "go build -buildvcs=false -o "+filepath.Join(w.tree(), "bin")+"/ ./cmd/datbench", w.repository)
}

func (w *world) tree() string {
	if w.copy == "" {
		return w.repository
	}
	return w.copy
}

func sh(t *testing.T, script, dir string) {
	t.Helper()
	cmd := exec.Command("bash", "-euc", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// enter returns shell commands that replace the real directories by the copies, in a mount namespace. In a lab they
// also mount the /sys of the network namespace.
func (w *world) enter(p plan) string {
	if w.copy == "" {
		return "cd " + w.repository + "\n"
	}
	s := fmt.Sprintf("mount --bind %s /etc; mount --bind %s /usr/local/bin; ", w.etc, w.local)
	if p.kind != "host" {
		s += "mount -t sysfs sysfs /sys; "
	}
	if p.under != nil {
		// Other users may have no access to the repository.
		return s + fmt.Sprintf("mount --bind %s /mnt; cd /mnt; export HOME=/tmp\n", w.copy)
	}
	return s + fmt.Sprintf("mount --bind %s %s; cd %[2]s\n", w.copy, w.repository)
}

// testCapabilities checks that datbench works with only the capabilities of the service and of the pod. It runs as
// nobody for the service, and as root for the pod; neither can gain more capabilities.
func testCapabilities(t *testing.T, w *world) {
	service := regexp.MustCompile(`(?m)^AmbientCapabilities=(.*)$`).FindStringSubmatch(read(t, "docs/datxdp.service"))
	if service == nil {
		t.Fatal("docs/datxdp.service has no AmbientCapabilities")
	}
	caps := "-all,+" + strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(service[1], "CAP_", "")), " ", ",+")
	runs := map[string][]string{"service": {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
		"--inh-caps=" + caps, "--ambient-caps=" + caps, "--bounding-set=" + caps}}
	for _, p := range pods(t) {
		add := p.Spec.Containers[0].SecurityContext.Capabilities.Add
		caps := "-all,+" + strings.ToLower(strings.Join(add, ",+"))
		runs["pod "+p.Metadata.Name] = []string{"setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=" + caps}
	}
	for name, under := range runs {
		t.Run(name, func(t *testing.T) {
			var all labtest.Output
			r := w.start(t, hosts(t), step{commands: "./bin/datbench server --ia xdp:eth0"}, plan{kind: "lab", under: under}, &all)
			r.awaitWord(t)
			if !printed(all.String(), "serving on 10.0.0.1…") {
				t.Errorf("got %s", &all)
			}
			r.stop(t)
		})
	}
}

// hosts creates a lab like the two hosts of the documents: eth0, 10.0.0.1 and 10.0.0.2.
func hosts(t *testing.T) *lab.Lab {
	t.Helper()
	needTools(t, "ip ")
	l := labtest.New(t, lab.Options{})
	for _, s := range []lab.Side{lab.A, lab.B} {
		script := fmt.Sprintf(`ip link set veth0 down; ip address flush dev veth0; ip link set veth0 name eth0
			ip address add 10.0.0.%d/24 dev eth0; ip link set eth0 up`, s+1)
		if err := l.Do(s, func() error {
			out, err := exec.Command("bash", "-euc", script).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// run runs a block and checks its output.
func (w *world) run(t *testing.T, b block, p plan) {
	var l *lab.Lab
	if p.kind != "host" {
		l = hosts(t)
	}
	var all labtest.Output
	failed := false
	for _, s := range p.steps(b.text) {
		r := w.start(t, l, s, p, &all)
		if s.lasting {
			r.awaitWord(t)
			t.Cleanup(func() { r.stop(t) })
			continue
		}
		err := r.wait()
		if err != nil && starved.MatchString(r.said.String()) {
			r = w.start(t, l, s, p, &all)
			err = r.wait()
		}
		if err != nil && !p.tolerates(err, r.said.String()) {
			failed = true
			if !p.fails {
				t.Errorf("%v: %v\n%s\n%s", b, err, s.commands, &all)
			}
		}
	}
	if p.fails && !failed {
		t.Errorf("%v has not failed:\n%s", b, &all)
	}
	for line := range strings.Lines(b.output) {
		if !printed(all.String(), strings.TrimSpace(line)) {
			t.Errorf("%v: %q is not in\n%s", b, line, &all)
		}
	}
}

// Errors that are not a fault of the command.
var (
	// unsupported matches ethtool's error if a veth lacks a function of a NIC. Errors of syntax are different.
	unsupported = regexp.MustCompile(`Operation not supported|channel count exceeds maximum`)
	// invalid matches datbench's error if it measured for too short a time, or on a busy host.
	invalid = regexp.MustCompile(`results? (is|are) not valid, for the reasons? given`)
	// starved matches the error of an end that had no core for two seconds, because the host is busy with other tests.
	// Such a command gets a second try.
	starved = regexp.MustCompile(`the peer fell silent|the peer ended the connection`)
)

func (p plan) tolerates(err error, said string) bool {
	var exit *exec.ExitError
	return p.kind == "nic" && unsupported.MatchString(said) ||
		len(p.add) > 0 && errors.As(err, &exit) && exit.ExitCode() == 1 && invalid.MatchString(said)
}

// running is a step that was started.
type running struct {
	cmd  *exec.Cmd
	all  *labtest.Output
	said labtest.Output
	word chan struct{} // closed when the step has printed something
	once sync.Once
	done chan error
}

func (r *running) Write(b []byte) (int, error) {
	_, _ = r.all.Write(b) // writing to a buffer cannot fail
	n, err := r.said.Write(b)
	r.once.Do(func() { close(r.word) })
	return n, err
}

func (w *world) start(t *testing.T, l *lab.Lab, s step, p plan, all *labtest.Output) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	// sudo is replaced, because the shell already has the privilege.
	script := `sudo() { "$@"; }` + "\n" + s.commands
	r := &running{all: all, word: make(chan struct{}), done: make(chan error, 1)}
	args := []string{"-euc", w.enter(p) + `exec "$@"`, "enter"}
	args = append(append(args, p.under...), "bash", "-euo", "pipefail", "-c", script)
	r.cmd = exec.CommandContext(ctx, "bash", args...)
	r.cmd.Stdout, r.cmd.Stderr = r, r
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if w.copy != "" {
		r.cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS // Go makes the mounts private
	}
	r.cmd.Cancel = func() error { return syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) }
	start := r.cmd.Start
	if l != nil {
		side := lab.A
		if s.other {
			side = lab.B
		}
		start = func() error { return l.Do(side, r.cmd.Start) }
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	return r
}

func (r *running) wait() error { return <-r.done }

// awaitWord waits for the first output of a step that keeps running. The step is ready then.
func (r *running) awaitWord(t *testing.T) {
	t.Helper()
	select {
	case <-r.word:
	case err := <-r.done:
		t.Fatalf("%s has ended: %v\n%s", r.cmd, err, &r.said)
	}
}

// stop ends a step that keeps running, as ^C does.
func (r *running) stop(t *testing.T) {
	if err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Errorf("%s has ended by itself: %v\n%s", r.cmd, err, &r.said)
	}
	_ = r.wait() // the signal ends it
}
