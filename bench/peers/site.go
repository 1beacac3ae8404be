package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/datxdp/datxdp/bench/peers/tool"
)

// site is two hosts and the link between them. The server's is the first.
type site struct {
	// host is the server's address, ifname the interface at both ends.
	host, ifname string
	// inside runs what follows as a program of its host.
	inside []string
	// launch starts a program on one of the hosts; it dies with this process.
	launch func(end int, cmd *exec.Cmd) (child, error)
	// close takes the hosts away, after all their programs.
	close func() error
}

// The ends of a site.
const (
	serverEnd = iota
	clientEnd
)

// child is a program that was started.
type child interface {
	Pid() int
	Done() <-chan struct{}
	Wait() error
	Kill()
}

// process is a program that runs at a site, and what it says.
type process struct {
	child
	cmd      *exec.Cmd
	out, err output
}

func (s *site) start(end int, c tool.Command) (*process, error) {
	args := slices.Concat(s.inside, c.Args)
	p := &process{cmd: exec.Command(args[0], args[1:]...)}
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.cmd.WaitDelay = stopLimit
	var err error
	p.child, err = s.launch(end, p.cmd)
	return p, err
}

const (
	// stopLimit is how long a program may take to end that was told to, and its output to come.
	stopLimit = time.Second
	// pollEvery is how often a server is looked at that is to become ready: nobody tells when it is.
	pollEvery = 2 * time.Millisecond
)

// await waits until a program is ready.
func (p *process) await(ctx context.Context, ready func() bool) error {
	for !ready() {
		select {
		case <-p.Done():
			return fmt.Errorf("ended before it served%s", p.because())
		case <-ctx.Done():
			return fmt.Errorf("did not serve %w", context.Cause(ctx))
		case <-time.After(pollEvery):
		}
	}
	return nil
}

// end waits for a program's end.
func (p *process) end(ctx context.Context) error {
	select {
	case <-p.Done():
		return p.Wait()
	case <-ctx.Done():
		return fmt.Errorf("did not end %w", context.Cause(ctx))
	}
}

// stop ends a program, at once if it will not by itself.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error: it has ended
	select {
	case <-p.Done():
	case <-time.After(stopLimit):
	}
	p.Kill()
}

// because follows what went wrong: what the program said last, of errors if it said any.
func (p *process) because() string {
	for _, text := range []string{p.err.String(), p.out.String()} {
		if line := tool.LastLine(text); line != "" {
			return ": " + line
		}
	}
	return ""
}

// output keeps what a program prints, and no more than a peer ever should.
type output struct {
	lock sync.Mutex
	text []byte
}

const maxOutput = 1 << 20

func (o *output) Write(p []byte) (int, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.text = append(o.text, p[:min(len(p), maxOutput-len(o.text))]...)
	return len(p), nil
}

func (o *output) String() string {
	o.lock.Lock()
	defer o.lock.Unlock()
	return string(o.text)
}

// finish runs a program to its end. The process is there with an error too.
func (s *site) finish(ctx context.Context, end int, c tool.Command) (*process, error) {
	p, err := s.start(end, c)
	if err != nil {
		return p, err
	}
	defer p.stop()
	return p, p.end(ctx)
}

// within bounds what follows; its cause says how long it had.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("within %s", d))
}
