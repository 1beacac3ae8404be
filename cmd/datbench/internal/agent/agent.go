package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/ends"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// Commands of the main job to an agent. An agent holds at most one target and one initiator.
const (
	doServe = "serve" // open a target
	doStop  = "stop"  // close the target
	doOpen  = "open"  // open an initiator
	doRun   = "run"   // measure one row with the initiator
	doClose = "close" // close the initiator
)

// command is one line of JSON to an agent. The agent answers with one line, a reply.
type command struct {
	Do      string        `json:"do"`
	Station *plan.Station `json:"station,omitempty"`
	Spec    *plan.Spec    `json:"row,omitempty"`
}

type reply struct {
	Error  string         `json:"error,omitempty"`
	Result *result.Result `json:"result,omitempty"`
}

// agent is one end of the main job.
type agent struct {
	host      *workload.Host
	target    ends.Target
	initiator ends.Initiator
	// GiveUp is called when a command hangs. It must end the process, so that the kernel releases its resources.
	GiveUp func(why string)
}

func New(h *workload.Host) *agent { return &agent{host: h, GiveUp: func(string) {}} }

// limit returns how long a command may take.
func (c command) limit() time.Duration {
	if c.Do == doRun && c.Spec != nil {
		return c.Spec.Limit()
	}
	return plan.OpenLimit
}

// Serve executes the commands that it reads from r. The end of r means that the main job has ended. Serve then stops
// the row that is running. If the row does not stop, a watchdog ends the process.
func (a *agent) Serve(ctx context.Context, r io.Reader, w io.Writer) error {
	interrupt := ctx.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	commands, ended := make(chan command), make(chan error, 1)
	go func() {
		ended <- receiveCommands(ctx, r, commands)
		cancel()
		time.AfterFunc(watchdogAfter, func() { a.GiveUp("the main job is gone, and closing hangs") })
	}()
	for out := json.NewEncoder(w); ; {
		select {
		case c := <-commands:
			if err := out.Encode(a.timed(ctx, c)); err != nil {
				return err
			}
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, a.stop(), a.closeInitiator())
		case <-interrupt:
			return errors.Join(ErrInterrupted, a.stop(), a.closeInitiator())
		}
	}
}

// receiveCommands decodes commands and passes them on until the input ends.
func receiveCommands(ctx context.Context, r io.Reader, to chan<- command) error {
	for in := json.NewDecoder(bufio.NewReader(r)); ; {
		var c command
		if err := in.Decode(&c); err != nil {
			return err
		}
		select {
		case to <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// timed executes a command. A watchdog ends the process if the command exceeds its limit by watchdogAfter.
func (a *agent) timed(ctx context.Context, c command) reply {
	limit := c.limit() + watchdogAfter
	watchdog := time.AfterFunc(limit, func() { a.GiveUp(fmt.Sprintf("stuck at %s for %s", c.Do, limit)) })
	defer watchdog.Stop()
	return a.answer(ctx, c)
}

func (a *agent) answer(ctx context.Context, c command) reply {
	r, err := a.do(ctx, c)
	if err != nil {
		return reply{Error: result.OneLine(err.Error())}
	}
	return reply{Result: r}
}

func (a *agent) do(ctx context.Context, c command) (*result.Result, error) {
	switch {
	case c.Do == doServe && c.Station != nil && a.target == nil:
		return nil, a.start(*c.Station)
	case c.Do == doStop:
		return nil, a.stop()
	case c.Do == doOpen && c.Station != nil && a.initiator == nil:
		return nil, a.openInitiator(*c.Station)
	case c.Do == doRun && c.Spec != nil && a.initiator != nil:
		return a.measure(ctx, *c.Spec)
	case c.Do == doClose:
		return nil, a.closeInitiator()
	}
	return nil, fmt.Errorf("agent cannot %q now", c.Do)
}

func (a *agent) start(s plan.Station) error {
	t, err := ends.NewTarget(a.host, s)
	if err != nil {
		return err
	}
	a.target = t
	return nil
}

func (a *agent) stop() error {
	t := a.target
	if a.target = nil; t == nil {
		return nil
	}
	return t.Close()
}

func (a *agent) openInitiator(s plan.Station) error {
	i, err := ends.NewInitiator(a.host, s)
	if err != nil {
		return err
	}
	a.initiator = i
	return nil
}

func (a *agent) closeInitiator() error {
	i := a.initiator
	if a.initiator = nil; i == nil {
		return nil
	}
	return i.Close()
}

// measure measures a row with the initiator. The other end is on the same host, so the busy loops are beside both ends.
func (a *agent) measure(ctx context.Context, row plan.Spec) (*result.Result, error) {
	stop, err := StartLoops(row.Busy)
	if err != nil {
		return nil, err
	}
	defer stop()
	r, err := a.initiator.Run(ctx, row)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// Interrupted replaces an error that is a consequence of the cancelled context with ErrInterrupted.
func Interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

var ErrInterrupted = errors.New("interrupted; nothing is left behind")
