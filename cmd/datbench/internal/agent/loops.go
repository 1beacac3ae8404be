package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"sync"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
)

// LoopsCommand is the hidden subcommand of datbench that runs [Loop].
const LoopsCommand = "busy"

// StartLoops starts n busy loops at normal priority in a process of their own, so that they do not occupy the Go
// scheduler of this process. It returns when all of them compute. The function stop ends them; they also end when this
// process dies.
//
// System calls: clone, prctl(PR_SET_PDEATHSIG) in the child, kill, wait4.
func StartLoops(n int) (stop func(), err error) {
	if n == 0 {
		return func() {}, nil
	}
	exe, err := executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, LoopsCommand, strconv.Itoa(n))
	in, err := cmd.StdinPipe() // its end ends the child
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	proc, err := StartLocal(cmd)
	if err != nil {
		return nil, err
	}
	err = plan.Within(plan.OpenLimit, "starting the busy loops", func() error {
		_, err := bufio.NewReader(out).ReadByte()
		return err
	})
	if err != nil {
		proc.Kill()
		return nil, fmt.Errorf("busy loops: %w", err)
	}
	return proc.Kill, nil
}

// Loop computes in n threads until the input ends. It writes a line when all of them compute.
func Loop(n int, stdin io.Reader, stdout io.Writer) error {
	if n < 1 || n > plan.MaxBusy {
		return fmt.Errorf("%d busy loops are not from 1 to %d", n, plan.MaxBusy)
	}
	runtime.GOMAXPROCS(n + 1) // one for this goroutine
	var begun sync.WaitGroup
	begun.Add(n)
	for range n {
		go compute(&begun)
	}
	begun.Wait()
	if _, err := fmt.Fprintln(stdout, "computing"); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, stdin)
	return err
}

func compute(begun *sync.WaitGroup) {
	begun.Done()
	for { //nolint:staticcheck // SA5002: it must use up its core
	}
}
