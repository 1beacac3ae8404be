package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// What the main job asks of an agent. A side holds at most one target and one initiator.
const (
	doServe = "serve" // open a target
	doStop  = "stop"  // close it
	doOpen  = "open"  // open an initiator
	doRun   = "run"   // measure one row with it
	doClose = "close" // close it
)

// command is one line of JSON to an agent; reply is the one line it answers.
type command struct {
	Do      string   `json:"do"`
	Station *station `json:"station,omitempty"`
	Spec    *Spec    `json:"row,omitempty"`
}

type reply struct {
	Error  string         `json:"error,omitempty"`
	Result *result.Result `json:"result,omitempty"`
}

// agent is one side of the main job.
type agent struct {
	host      *host
	target    target
	initiator initiator
	// giveUp ends the process when something has taken longer than it may. The kernel then takes
	// back what it holds.
	giveUp func(why string)
}

func newAgent(h *host) *agent { return &agent{host: h, giveUp: func(string) {}} }

// limit is how long a command may take.
func (c command) limit() time.Duration {
	if c.Do == doRun && c.Spec != nil {
		return c.Spec.limit()
	}
	return openLimit
}

// serve answers commands until there are no more. The end of its input is the end of the main job:
// it stops a row that runs, and ends an agent that does not stop.
func (a *agent) serve(ctx context.Context, r io.Reader, w io.Writer) error {
	interrupt := ctx.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	commands, ended := make(chan command), make(chan error, 1)
	go func() {
		ended <- receiveCommands(ctx, r, commands)
		cancel()
		time.AfterFunc(watchdogAfter, func() { a.giveUp("the main job is gone, and closing hangs") })
	}()
	for out := json.NewEncoder(w); ; {
		select {
		case c := <-commands:
			if err := out.Encode(a.timed(ctx, c)); err != nil {
				return err
			}
		case err := <-ended:
			return errors.Join(ignoreEOF(err), a.stop(), a.closeInitiator())
		case <-interrupt:
			return errors.Join(errInterrupted, a.stop(), a.closeInitiator())
		}
	}
}

// receiveCommands passes on what comes until the input ends.
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

// timed answers a command, and gives up if that takes far longer than it may.
func (a *agent) timed(ctx context.Context, c command) reply {
	limit := c.limit() + watchdogAfter
	watchdog := time.AfterFunc(limit, func() { a.giveUp(fmt.Sprintf("stuck at %s for %s", c.Do, limit)) })
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

func (a *agent) start(s station) error {
	t, err := newTarget(a.host, s)
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
	return t.close()
}

func (a *agent) openInitiator(s station) error {
	i, err := newInitiator(a.host, s)
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
	return i.close()
}

func (a *agent) measure(ctx context.Context, row Spec) (*result.Result, error) {
	r, err := a.initiator.run(ctx, row)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// interrupted tells an interrupt from a failure.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

var errInterrupted = errors.New("interrupted; nothing is left behind")
