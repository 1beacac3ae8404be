//go:build !linux

package main

import (
	"os"
	"os/exec"
)

func executable() (string, error) { return os.Executable() }

// child is a process of this host. It ends by itself when its standard input does.
type child struct{ cmd *exec.Cmd }

func startHere(cmd *exec.Cmd) (process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{cmd}, nil
}

func (c *child) Pid() int { return c.cmd.Process.Pid }

func (c *child) Kill() {
	_ = c.cmd.Process.Kill() // it has ended already, or ends now
	_ = c.cmd.Wait()
}
