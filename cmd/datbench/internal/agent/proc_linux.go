package agent

import (
	"os/exec"
	"runtime"
	"syscall"
)

// executable returns a path that opens this program even if its file was replaced or deleted.
func executable() (string, error) { return "/proc/self/exe", nil }

// child is a process in the namespaces of this process.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// StartLocal starts a command in the namespaces of this process. The kernel kills the child when this process dies.
//
// System calls: clone, prctl(PR_SET_PDEATHSIG) in the child, wait4.
func StartLocal(cmd *exec.Cmd) (Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go c.startAndWait(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// startAndWait starts the child, and keeps the calling thread alive until the child has ended. Otherwise the kernel
// would send the parent-death signal to the child when this thread ends, even if the other threads of the process
// continue.
func (c *child) startAndWait(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err == nil {
		c.err = c.cmd.Wait()
		close(c.done)
	}
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
