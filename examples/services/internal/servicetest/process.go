package servicetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// patience limits the life of a process. No process takes nearly as long.
const patience = 5 * time.Minute

// variable makes a test binary run the example in place of its tests.
const variable = "DATXDP_SERVICE"

// Main runs the tests or, in a process that Host.Start has started, the example. The example must close everything: a
// goroutine of the adapter or of a connection that is left is a failure.
func Main(m *testing.M, main func()) {
	if os.Getenv(variable) == "" {
		os.Exit(m.Run())
	}
	main()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Process is a running example.
type Process struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr labtest.Output
}

// Start starts the example whose test this is, with the flags of the network and args.
func (h Host) Start(t *testing.T, args ...string) *Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	p := &Process{t: t, cmd: exec.CommandContext(ctx, "/proc/self/exe", append(h.Flags, args...)...)}
	p.cmd.Env = append(os.Environ(), variable+"=1")
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := h.start(p.cmd); err != nil {
		t.Fatal(err)
	}
	return p
}

// Await waits until the process has printed a line that matches a regular expression.
func (p *Process) Await(pattern string) *Process {
	p.t.Helper()
	want := regexp.MustCompile(pattern)
	for {
		line, err := p.out.ReadString('\n')
		if want.MatchString(line) {
			return p
		}
		if err != nil {
			p.t.Fatalf("%v: %v: it has not printed %s; %v\n%s", p.cmd, err, pattern, p.cmd.Wait(), &p.stderr)
		}
	}
}

// Line returns the next line that the process prints.
func (p *Process) Line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%v: %v; %v\n%s", p.cmd, err, p.cmd.Wait(), &p.stderr)
	}
	return strings.TrimSuffix(line, "\n")
}

func (p *Process) wait() (string, error) {
	rest, _ := io.ReadAll(p.out) // Wait returns the error
	return string(rest), p.cmd.Wait()
}

// Output waits until the process has ended successfully, and returns what it has printed.
func (p *Process) Output() string {
	p.t.Helper()
	out, err := p.wait()
	if err != nil || p.stderr.String() != "" {
		p.t.Errorf("%v: %v\n%s", p.cmd, err, &p.stderr)
	}
	return out
}

// Interrupt sends ^C. The process must end successfully. Interrupt returns what it has printed.
func (p *Process) Interrupt() string {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		p.t.Error(err)
	}
	return p.Output()
}

// Kill ends the process at once, as a crash does.
func (p *Process) Kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Error(err)
	}
	_, _ = p.wait() // the error is that it was killed
}

// Fails waits until the process has failed with an error of one line, and returns the line.
func (p *Process) Fails() string {
	p.t.Helper()
	_, err := p.wait()
	line := strings.TrimSuffix(p.stderr.String(), "\n")
	if err == nil || line == "" || strings.Contains(line, "\n") {
		p.t.Errorf("%v: %v, want a failure and one line: %q", p.cmd, err, line)
	}
	return line
}

// Match fails the test unless the whole text matches a regular expression.
func Match(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile(`\A(?:` + pattern + `)\z`).MatchString(text) {
		t.Errorf("got %q, want %s", text, pattern)
	}
}

// Times is a pattern for the line of measure.Requests.
const Times = `\d+ requests, one at a time: p50 [\d.]+[mµn]?s, p99 [\d.]+[mµn]?s\n`
