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

// Process is a child that the kernel kills when this process dies.
type Process interface {
	// Kill kills the process and waits for its end. Wait waits for its end and returns its exit error.
	Kill()
	Wait() error
	Pid() int
}

// remote controls one agent on behalf of the main job. One goroutine uses it.
type remote struct {
	name string
	proc Process
	in   io.WriteCloser
	out  io.ReadCloser
	dec  *json.Decoder
	log  *tail
	// The context dead is done when the process has ended; the cause of the context says how it ended.
	dead context.Context
	// peer is the other agent. A call ends when either agent dies.
	peer *remote
}

// startFunc starts a command as a process that dies with this process.
type startFunc func(*exec.Cmd) (Process, error)

// startRemote starts this program again as an agent. Extra files become descriptors 3 and up.
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

// watch records the end of the agent's process.
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

// kill kills the agent and waits until it has ended.
func (r *remote) kill() error {
	return plan.Within(killLimit, fmt.Sprintf("the death of %s, process %d,", r.name, r.proc.Pid()), func() error {
		r.proc.Kill()
		return nil
	})
}

// abandon kills the agent. It also ends a pending call if the agent does not die.
func (r *remote) abandon() {
	_ = r.kill() // closing the pair reports it
	_, _ = r.in.Close(), r.out.Close()
}

// call sends one command and waits for the reply. It fails when the command's limit is reached or either agent dies.
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
		return nil, fmt.Errorf("%s: %w", c.Do, r.lostContact(err))
	case answer.Error != "":
		return nil, r.orPeerDeath(answer.Error)
	}
	return answer.Result, nil
}

// orPeerDeath returns an agent's error text as an error. If the other agent has died, the error begins with the reason
// for this death. The death may be reported later than the error text, so orPeerDeath waits up to deathDelay for the
// report.
func (r *remote) orPeerDeath(text string) error {
	select {
	case <-r.peer.dead.Done():
		return fmt.Errorf("%w; %s", context.Cause(r.peer.dead), text)
	case <-time.After(deathDelay):
		return errors.New(text)
	}
}

// lostContact returns how the agent died, or err if the agent is alive but unreachable.
func (r *remote) lostContact(err error) error {
	select {
	case <-r.dead.Done():
		return context.Cause(r.dead)
	case <-time.After(killLimit):
		return fmt.Errorf("lost contact with %s: %w", r.name, err)
	}
}

// tail keeps the end of an agent's standard error output.
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

// lastLine returns the output line that best explains why the agent ended. Normally this is the last line. If a line
// reports a panic, lastLine returns that line. If there is no output, lastLine returns the text of err.
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
