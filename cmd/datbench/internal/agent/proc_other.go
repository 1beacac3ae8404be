//go:build !linux

package agent

import (
	"os"
	"os/exec"
)

func executable() (string, error) { return os.Executable() }

// child is a process of this host. It ends by itself when its standard input does.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

func Here(cmd *exec.Cmd) (Process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

func (c *child) Pid() int { return c.cmd.Process.Pid }

func (c *child) Wait() error {
	<-c.done
	return c.err
}

func (c *child) Kill() {
	_ = c.cmd.Process.Kill() // it has ended already, or ends now
	<-c.done
}
