//go:build !linux

package agent

import (
	"os"
	"os/exec"
)

func executable() (string, error) { return os.Executable() }

// child is a process on this host. It ends when its standard input is closed.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

func StartLocal(cmd *exec.Cmd) (Process, error) {
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
	_ = c.cmd.Process.Kill() // the process ends now or has ended already
	<-c.done
}
