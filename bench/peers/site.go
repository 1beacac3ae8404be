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

// site is two hosts and the link between them. The first is the server's.
type site struct {
	// host is the server's address, and ifname the name of the interface at both ends.
	host, ifname string
	// hosts are the addresses of all hosts, for services.
	hosts []string
	// inside is a command prefix that runs a program on its host.
	inside []string
	// launch starts a program on one of the hosts. The program dies with this process.
	launch func(end int, cmd *exec.Cmd) (child, error)
	// close removes the hosts, after all their programs have ended.
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

// process is a program that runs at a site, with its output.
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
	// stopLimit is the time for a program to end after a signal, and for its output to arrive.
	stopLimit = time.Second
	// pollEvery is the time between two checks whether a server is ready. No event reports this.
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

// end waits for the end of a program.
func (p *process) end(ctx context.Context) error {
	select {
	case <-p.Done():
		return p.Wait()
	case <-ctx.Done():
		return fmt.Errorf("did not end %w", context.Cause(ctx))
	}
}

// stop ends a program with a signal, and kills it if it does not end.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	select {
	case <-p.Done():
	case <-time.After(stopLimit):
	}
	p.Kill()
}

// because returns the last error line of a program, or its last output line, for an error message.
func (p *process) because() string {
	for _, text := range []string{p.err.String(), p.out.String()} {
		if line := tool.LastLine(text); line != "" {
			return ": " + line
		}
	}
	return ""
}

// output keeps the output of a program, up to a size that no peer should reach.
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

// finish runs a program to its end. The process is also returned with an error.
func (s *site) finish(ctx context.Context, end int, c tool.Command) (*process, error) {
	p, err := s.start(end, c)
	if err != nil {
		return p, err
	}
	defer p.stop()
	return p, p.end(ctx)
}

// within returns a context with a time limit. Its cause names the limit.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("within %s", d))
}
