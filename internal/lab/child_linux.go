package lab

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// Child is a process in a network namespace.
type Child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts cmd in a new network namespace. The kernel kills the child when this process dies for any reason. Start
// needs CAP_SYS_ADMIN.
//
// System calls: clone(CLONE_NEWNET), prctl(PR_SET_PDEATHSIG) in the child, wait4.
func Start(cmd *exec.Cmd) (*Child, error) {
	attributes(cmd).Cloneflags |= syscall.CLONE_NEWNET
	return start(cmd, cmd.Start)
}

// Start starts cmd in the namespace of one end. The kernel kills the child when this process dies for any reason.
// Closing the lab does not end the child.
//
// System calls: setns before and after clone, prctl(PR_SET_PDEATHSIG) in the child, wait4.
func (l *Lab) Start(s Side, cmd *exec.Cmd) (*Child, error) {
	return start(cmd, func() error { return l.Do(s, cmd.Start) })
}

func start(cmd *exec.Cmd, fork func() error) (*Child, error) {
	attributes(cmd).Pdeathsig = syscall.SIGKILL
	c := &Child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go c.hold(fork, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("lab: start %s in a network namespace: %w", cmd.Path, err)
	}
	return c, nil
}

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

// hold starts the child and keeps its goroutine locked to the thread until the child ends. The kernel sends the
// parent-death signal when the thread that forked ends, even if the process continues. The runtime may end an idle
// thread at any time, but not a locked one.
func (c *Child) hold(fork func() error, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := fork()
	started <- err
	if err != nil {
		return
	}
	c.err = c.cmd.Wait()
	close(c.done)
}

// Pid returns the child's process ID, for [Join].
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Wait waits for the end of the child and returns the result of [exec.Cmd.Wait]. It may be called by several
// goroutines, and more than once.
func (c *Child) Wait() error {
	<-c.done
	return c.err
}

// Done returns a channel that is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Kill kills the child and waits for its end.
func (c *Child) Kill() {
	// The only possible error is that the child has already ended.
	_ = c.cmd.Process.Kill()
	<-c.done
}
