package main

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
)

// process is a child that is killed by the kernel when this process dies.
type process interface {
	Kill()
	Pid() int
}

// remote is the main job's hold on one agent. One goroutine uses it.
type remote struct {
	name string
	proc process
	in   io.WriteCloser
	out  *json.Decoder
	log  *tail
}

// startFunc starts a command so that it dies with this process.
type startFunc func(*exec.Cmd) (process, error)

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
	return &remote{name: name, proc: proc, in: in, out: json.NewDecoder(out), log: log}, nil
}

// call sends one command and waits for its answer, no longer than limit.
func (r *remote) call(ctx context.Context, limit time.Duration, c command) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(ctx, r.proc.Kill)()

	var answer reply
	err := json.NewEncoder(r.in).Encode(c)
	if err == nil {
		err = r.out.Decode(&answer)
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not %s within %s: %w", r.name, c.Do, limit, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("%s died at %s: %s", r.name, c.Do, r.log.lastLine(err))
	case answer.Error != "":
		return nil, errors.New(answer.Error)
	}
	return answer.Result, nil
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
