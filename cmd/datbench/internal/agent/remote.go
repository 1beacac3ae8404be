package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Process is a child that is killed by the kernel when this process dies.
type Process interface {
	// Kill returns when it has ended; Wait too, and says how.
	Kill()
	Wait() error
	Pid() int
}

// remote is the main job's hold on one agent. One goroutine uses it.
type remote struct {
	name string
	proc Process
	in   io.WriteCloser
	out  io.ReadCloser
	dec  *json.Decoder
	log  *tail
	// dead ends when the process does; its cause says how.
	dead context.Context
	// peer is the other agent: without it nothing is worth waiting for.
	peer *remote
}

// startFunc starts a command so that it dies with this process.
type startFunc func(*exec.Cmd) (Process, error)

// startRemote runs this program again as an agent. Extra files become descriptors 3 and up.
func startRemote(name string, start startFunc, args []string, extra ...*os.File) (*remote, error) {
	exe, err := executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, append([]string{"agent"}, args...)...)
	cmd.ExtraFiles = extra
	log := &tail{}
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	proc, err := start(cmd)
	if err != nil {
		return nil, err
	}
	r := &remote{name: name, proc: proc, in: in, out: out, dec: json.NewDecoder(out), log: log}
	r.watch()
	return r, nil
}

// watch notes the death of the agent.
func (r *remote) watch() {
	var died context.CancelCauseFunc
	r.dead, died = context.WithCancelCause(context.Background())
	go func() {
		err := r.proc.Wait()
		if err == nil {
			err = errEnded
		}
		died(fmt.Errorf("%s died: %s", r.name, r.log.lastLine(err)))
	}()
}

var errEnded = errors.New("it ended by itself")

// kill ends the agent and waits until it has ended.
func (r *remote) kill() error {
	return plan.Within(killLimit, fmt.Sprintf("the death of %s, process %d,", r.name, r.proc.Pid()), func() error {
		r.proc.Kill()
		return nil
	})
}

// abandon kills the agent, and ends a call that waits for it even if it does not die.
func (r *remote) abandon() {
	_ = r.kill() // whoever closes the pair is told
	_, _ = r.in.Close(), r.out.Close()
}

// call sends one command and waits for its answer, no longer than its limit and no longer than both
// agents live.
func (r *remote) call(ctx context.Context, c command) (*result.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit(), fmt.Errorf("%s did not %s within %s", r.name, c.Do, c.limit()))
	defer cancel()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer context.AfterFunc(r.peer.dead, func() { abort(context.Cause(r.peer.dead)) })()
	defer context.AfterFunc(ctx, r.abandon)()

	var answer reply
	err := json.NewEncoder(r.in).Encode(c)
	if err == nil {
		err = r.dec.Decode(&answer)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.Do, r.epitaph(err))
	case answer.Error != "":
		return nil, r.blame(answer.Error)
	}
	return answer.Result, nil
}

// blame is what went wrong, or that the other agent has died of which it may be a consequence. The
// news of a death may come a moment later.
func (r *remote) blame(what string) error {
	select {
	case <-r.peer.dead.Done():
		return fmt.Errorf("%w; %s", context.Cause(r.peer.dead), what)
	case <-time.After(newsLimit):
		return errors.New(what)
	}
}

// epitaph is how the agent died, or why it cannot be heard any more.
func (r *remote) epitaph(err error) error {
	select {
	case <-r.dead.Done():
		return context.Cause(r.dead)
	case <-time.After(killLimit):
		return fmt.Errorf("%s cannot be heard: %w", r.name, err)
	}
}

// tail keeps the end of what an agent wrote to standard error.
type tail struct {
	lock sync.Mutex
	buf  []byte
}

const tailSize = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = t.buf[over:]
	}
	return len(p), nil
}

// lastLine is the line that explains a death best: that of a panic, else the last, else err.
func (t *tail) lastLine(err error) string {
	t.lock.Lock()
	defer t.lock.Unlock()
	last := err.Error()
	for line := range strings.Lines(string(t.buf)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}
