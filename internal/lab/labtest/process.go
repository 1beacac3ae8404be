package labtest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is a program that a test runs. Its methods fail the test; only the goroutine of the test may call them.
type Process struct {
	// Cmd may be changed until Start is called, except for its outputs.
	Cmd *exec.Cmd

	t      *testing.T
	out    *bufio.Reader
	stderr Output
}

// NewProcess returns a program that is not started yet. It is killed at the end of the test. If it runs for longer than
// limit after this call, it gets SIGQUIT first: a Go program then prints the stacks of its goroutines.
func NewProcess(t *testing.T, limit time.Duration, program string, args ...string) *Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	p := &Process{t: t, Cmd: exec.CommandContext(ctx, program, args...)}
	p.Cmd.Cancel = func() error {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return p.Cmd.Process.Signal(syscall.SIGQUIT)
		}
		return p.Cmd.Process.Kill()
	}
	p.Cmd.WaitDelay = 5 * time.Second
	return p
}

// Start calls start with Cmd: (*exec.Cmd).Start, or a function that calls it in a namespace. It returns p.
func (p *Process) Start(start func(*exec.Cmd) error) *Process {
	p.t.Helper()
	p.Cmd.Stderr = &p.stderr
	out, err := p.Cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := start(p.Cmd); err != nil {
		p.t.Fatal(err)
	}
	return p
}

// Await waits until the process has printed a line that matches a regular expression. It returns p.
func (p *Process) Await(pattern string) *Process {
	p.t.Helper()
	want := regexp.MustCompile(pattern)
	for {
		line, err := p.out.ReadString('\n')
		if want.MatchString(line) {
			return p
		}
		if err != nil {
			p.t.Fatalf("%v: %v: it has not printed %s; %v\n%s", p.Cmd, err, pattern, p.Cmd.Wait(), &p.stderr)
		}
	}
}

// Line returns the next line that the process prints.
func (p *Process) Line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%v: %v; %v\n%s", p.Cmd, err, p.Cmd.Wait(), &p.stderr)
	}
	return strings.TrimSuffix(line, "\n")
}

// Wait waits until the process has ended. It returns the standard output that Await and Line have not read, the standard
// error, and the error of Cmd.Wait.
func (p *Process) Wait() (stdout, stderr string, err error) {
	rest, _ := io.ReadAll(p.out) // Cmd.Wait returns the error
	err = p.Cmd.Wait()
	return string(rest), p.stderr.String(), err
}

// Output waits until the process has ended. The process must succeed and print no errors. Output returns the rest of its
// standard output.
func (p *Process) Output() string {
	p.t.Helper()
	stdout, stderr, err := p.Wait()
	if err != nil || stderr != "" {
		p.t.Errorf("%v: %v\n%s", p.Cmd, err, stderr)
	}
	return stdout
}

// Interrupt sends ^C to the process. Then it does the same as Output.
func (p *Process) Interrupt() string {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGINT); err != nil {
		p.t.Error(err)
	}
	return p.Output()
}

// Kill ends the process at once, as a crash does.
func (p *Process) Kill() {
	p.t.Helper()
	if err := p.Cmd.Process.Kill(); err != nil {
		p.t.Error(err)
	}
	_, _, _ = p.Wait() // the error is that it was killed
}

// Fails waits until the process has ended. The process must fail with an error of one line. Fails returns that line.
func (p *Process) Fails() string {
	p.t.Helper()
	_, stderr, err := p.Wait()
	line := strings.TrimSuffix(stderr, "\n")
	if err == nil || line == "" || strings.Contains(line, "\n") {
		p.t.Errorf("%v: %v, want a failure and one line: %q", p.Cmd, err, line)
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
