package agent

import (
	"os/exec"
	"runtime"
	"syscall"
)

// executable is this program, also when its file has been replaced or deleted meanwhile.
func executable() (string, error) { return "/proc/self/exe", nil }

// child is a process in the namespace of this one.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Here starts a command in the namespaces of this process. The kernel kills it when this process dies.
//
// System calls: clone, prctl(PR_SET_PDEATHSIG) in the child, wait4.
func Here(cmd *exec.Cmd) (Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go c.hold(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// hold keeps the thread that forked: the parent-death signal follows it, not the process.
func (c *child) hold(started chan<- error) {
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
	_ = c.cmd.Process.Kill() // it has ended already, or ends now
	<-c.done
}
