package agent

import (
	"context"
	"encoding/json"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// slowInitiator measures until its context ends; if deaf is set, it ignores the context for an hour.
type slowInitiator struct{ deaf bool }

func (i slowInitiator) Run(ctx context.Context, _ plan.Spec) (result.Result, error) {
	if i.deaf {
		time.Sleep(time.Hour)
	}
	<-ctx.Done()
	return result.Result{}, ctx.Err()
}

func (slowInitiator) Close() error { return nil }

// TestAgentEndsWithInput: an agent stops a running row when its main job has ended.
func TestAgentEndsWithInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(&workload.Host{})
		a.initiator = slowInitiator{}
		var out strings.Builder
		in := strings.NewReader(`{"do":"run","row":{"duration":3600000000000}}`)
		start := time.Now()
		if err := a.Serve(t.Context(), in, &out); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > watchdogAfter || !strings.Contains(out.String(), context.Canceled.Error()) {
			t.Errorf("after %s: %s", took, out.String())
		}
		time.Sleep(watchdogAfter) // the watchdog must not act: nothing hangs
	})
}

// TestAgentGivesUp: an agent that hangs ends itself, with and without a main job.
func TestAgentGivesUp(t *testing.T) {
	for name, closed := range map[string]bool{"row hangs": false, "main job gone": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := New(&workload.Host{})
				a.initiator = slowInitiator{deaf: true}
				gaveUp := make(chan string, 2)
				a.GiveUp = func(why string) { gaveUp <- why }
				in, commands := io.Pipe()
				served := make(chan error)
				go func() { served <- a.Serve(t.Context(), in, io.Discard) }()
				row := plan.Spec{Duration: time.Second}
				if err := json.NewEncoder(commands).Encode(command{Do: doRun, Spec: &row}); err != nil {
					t.Fatal(err)
				}
				want, within := "stuck at run for 23s", row.Limit()+watchdogAfter
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

// startAgents starts a pair of agents in this namespace.
func startAgents(t *testing.T) *Pair {
	t.Helper()
	t.Setenv("DATBENCH_TEST_AGENT", "1")
	p, err := Start(StartLocal, InheritedFiles{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// tcpPhase returns a kernel TCP phase between two loopback addresses.
func tcpPhase(port uint16) plan.Phase {
	a, b := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	return plan.Phase{
		Target:    plan.Station{Kind: plan.KindTCP, Local: a, Peer: b, Port: port},
		Initiator: plan.Station{Kind: plan.KindTCP, Local: b, Peer: a, Port: port},
	}
}

// TestCallEnds: a call ends when its context ends and when either agent dies.
func TestCallEnds(t *testing.T) {
	row := plan.Spec{Row: result.Row{Op: result.TCP, Metric: result.Rate, Size: 64}, Duration: time.Hour}
	tests := []struct {
		name string
		end  func(*Pair, context.CancelFunc)
		want string
	}{
		{"context", func(_ *Pair, cancel context.CancelFunc) { cancel() }, "context canceled"},
		{"agent", func(p *Pair, _ context.CancelFunc) { p.initiator.proc.Kill() }, "run: the initiator died: signal: killed"},
		{"other agent", func(p *Pair, _ context.CancelFunc) { p.target.proc.Kill() }, "the target died: signal: killed"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := startAgents(t)
			ph := tcpPhase(uint16(17651 + 2*i))
			if err := p.OpenPhase(t.Context(), ph); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(100*time.Millisecond, func() { tt.end(p, cancel) })
			start := time.Now()
			_, err := p.initiator.call(ctx, command{Do: doRun, Spec: &row})
			if took := time.Since(start); err == nil || !strings.HasPrefix(err.Error(), tt.want) || took > plan.PeerTimeout {
				t.Errorf("got %v after %s, want %s", err, took, tt.want)
			}
		})
	}
}

// TestAgentEndsByItself: an agent ends without a signal when its input is closed.
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
	case <-time.After(time.Minute):
		t.Error("it is still there")
	}
}
