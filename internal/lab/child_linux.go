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

// Start starts cmd in a new network namespace. The kernel kills the child when this process dies,
// however it dies. It needs CAP_SYS_ADMIN.
//
// System calls: clone(CLONE_NEWNET), prctl(PR_SET_PDEATHSIG) in the child, wait4.
func Start(cmd *exec.Cmd) (*Child, error) {
	attributes(cmd).Cloneflags |= syscall.CLONE_NEWNET
	return start(cmd, cmd.Start)
}

// Start starts cmd in the namespace of one end. The kernel kills the child when this process dies,
// however it dies; the child does not end with the lab.
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

// hold starts the child and stays until it ends. The parent-death signal follows the thread that
// forked, not the process: the runtime may end an idle thread at any time, and the child with it.
// So this goroutine keeps its thread to itself for as long as the child lives.
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

// Pid is the child's process id, for [Join].
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Wait waits for the child to end and returns what [exec.Cmd.Wait] did. It may be called more than
// once and by several goroutines.
func (c *Child) Wait() error {
	<-c.done
	return c.err
}

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Kill kills the child and waits for it.
func (c *Child) Kill() {
	// The only error is that the child has ended, which is what was asked for.
	_ = c.cmd.Process.Kill()
	<-c.done
}
