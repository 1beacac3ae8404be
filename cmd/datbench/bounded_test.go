package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// slowInitiator measures until its context ends, or, deaf, for an hour.
type slowInitiator struct{ deaf bool }

func (i slowInitiator) run(ctx context.Context, _ Spec) (result.Result, error) {
	if i.deaf {
		time.Sleep(time.Hour)
	}
	<-ctx.Done()
	return result.Result{}, ctx.Err()
}

func (slowInitiator) close() error { return nil }

// TestAgentEndsWithInput: an agent whose main job is gone stops what it does.
func TestAgentEndsWithInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(&host{})
		a.initiator = slowInitiator{}
		var out strings.Builder
		in := strings.NewReader(`{"do":"run","row":{"duration":3600000000000}}`)
		start := time.Now()
		if err := a.serve(t.Context(), in, &out); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > watchdogAfter || !strings.Contains(out.String(), context.Canceled.Error()) {
			t.Errorf("after %s: %s", took, out.String())
		}
		time.Sleep(watchdogAfter) // its watchdog has nothing to say: it does nothing here
	})
}

// TestAgentGivesUp: an agent that hangs ends itself, whether its main job is there or not.
func TestAgentGivesUp(t *testing.T) {
	for name, closed := range map[string]bool{"row hangs": false, "main job gone": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAgent(&host{})
				a.initiator = slowInitiator{deaf: true}
				gaveUp := make(chan string, 2)
				a.giveUp = func(why string) { gaveUp <- why }
				in, commands := io.Pipe()
				served := make(chan error)
				go func() { served <- a.serve(t.Context(), in, io.Discard) }()
				row := Spec{Duration: time.Second}
				if err := json.NewEncoder(commands).Encode(command{Do: doRun, Spec: &row}); err != nil {
					t.Fatal(err)
				}
				want, within := "stuck at run for 23s", row.limit()+watchdogAfter
				if closed {
					want, within = "the main job is gone, and closing hangs", watchdogAfter
					commands.Close()
				}
				start := time.Now()
				if why := <-gaveUp; why != want || time.Since(start) > within {
					t.Errorf("got %q after %s, want %q within %s", why, time.Since(start), want, within)
				}
				commands.Close()
				if err := <-served; err != nil {
					t.Error(err)
				}
				time.Sleep(watchdogAfter)
			})
		})
	}
}

// TestWithin: a wait ends with what it waits for, or with its limit.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := within(time.Second, "it", func() error { return io.EOF }); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want what it returns", err)
		}
		err := within(time.Second, "the thing", func() error { time.Sleep(time.Minute); return nil })
		if err == nil || err.Error() != "the thing takes longer than 1s" {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute) // for what it no longer waits for
	})
}

// startAgents starts a pair of agents in this namespace.
func startAgents(t *testing.T) *pair {
	t.Helper()
	t.Setenv("DATBENCH_TEST_RUN", "1")
	p, err := startPair(startHere, handed{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestCallEnds: a call ends with its context, with the death of the agent and with that of the other.
func TestCallEnds(t *testing.T) {
	row := Spec{Row: result.Row{Op: result.TCP, Metric: result.Rate, Size: 64}, Duration: time.Hour}
	tests := []struct {
		name string
		end  func(*pair, context.CancelFunc)
		want string
	}{
		{"context", func(_ *pair, cancel context.CancelFunc) { cancel() }, "context canceled"},
		{"agent", func(p *pair, _ context.CancelFunc) { p.initiator.proc.Kill() }, "run: the initiator died: signal: killed"},
		{"other agent", func(p *pair, _ context.CancelFunc) { p.target.proc.Kill() }, "the target died: signal: killed"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := startAgents(t)
			cfg := defaultConfig()
			cfg.port = uint16(17651 + 2*i)
			ph := loopback().phase(&cfg.options, kindTCP, "", 0, row)
			if err := p.openPhase(t.Context(), ph); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(100*time.Millisecond, func() { tt.end(p, cancel) })
			start := time.Now()
			_, err := p.initiator.call(ctx, command{Do: doRun, Spec: &row})
			if took := time.Since(start); err == nil || !strings.HasPrefix(err.Error(), tt.want) || took > patience {
				t.Errorf("got %v after %s, want %s", err, took, tt.want)
			}
		})
	}
}

// TestAgentEndsByItself: the end of its input is the end of an agent, without a signal.
func TestAgentEndsByItself(t *testing.T) {
	p := startAgents(t)
	if err := p.target.in.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.target.dead.Done():
		if got, want := context.Cause(p.target.dead).Error(), "the target died: it ended by itself"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	case <-time.After(limit):
		t.Error("it is still there")
	}
}
