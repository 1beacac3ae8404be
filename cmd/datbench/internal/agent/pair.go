package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Pair is two agents and the link between them.
type Pair struct {
	target, initiator *remote
	// SetMTU and SetOffloads are nil if the link has no such setting.
	SetMTU      func(mtu int) error
	SetOffloads func(on bool) error
	// Close ends both agents and removes the link.
	Close func() error
}

func (p *Pair) OpenPhase(ctx context.Context, ph plan.Phase) error {
	if ph.MTU != 0 && p.SetMTU != nil {
		if err := plan.Within(plan.OpenLimit, "setting the MTU of the link", func() error { return p.SetMTU(ph.MTU) }); err != nil {
			return err
		}
	}
	if err := p.Offloads(ph, false); err != nil {
		return err
	}
	if _, err := p.target.call(ctx, command{Do: doServe, Station: &ph.Target}); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if _, err := p.initiator.call(ctx, command{Do: doOpen, Station: &ph.Initiator}); err != nil {
		return fmt.Errorf("initiator: %w", err)
	}
	return nil
}

// Offloads switches the offloads of the link, if the phase measures without offloads and the link has any.
func (p *Pair) Offloads(ph plan.Phase, on bool) error {
	if !ph.NoOffloads || p.SetOffloads == nil {
		return nil
	}
	return plan.Within(plan.OpenLimit, "switching the offloads of the link", func() error { return p.SetOffloads(on) })
}

func (p *Pair) RunRow(ctx context.Context, row plan.Spec) result.Result {
	r, err := p.initiator.call(ctx, command{Do: doRun, Spec: &row})
	if err != nil {
		return measure.Failed(row, err)
	}
	return *r
}

// ClosePhase closes both ends, even if OpenPhase failed.
func (p *Pair) ClosePhase(ctx context.Context) error {
	_, err := p.initiator.call(ctx, command{Do: doClose})
	if _, stopErr := p.target.call(ctx, command{Do: doStop}); err == nil {
		err = stopErr
	}
	return err
}

// InheritedFiles are open files that the initiator's process inherits: a listening socket for metrics, and a capture
// file. A nil file is not inherited.
type InheritedFiles struct{ Metrics, Pcap *os.File }

// args returns the agent's flags for the files, with the descriptor numbers that the child process sees.
func (h InheritedFiles) args() (args []string, extra []*os.File) {
	const firstExtra = 3
	for _, f := range []struct {
		flag string
		file *os.File
	}{{"--metrics-fd", h.Metrics}, {"--pcap-fd", h.Pcap}} {
		if f.file != nil {
			args = append(args, f.flag, strconv.Itoa(firstExtra+len(extra)))
			extra = append(extra, f.file)
		}
	}
	return args, extra
}

func (h InheritedFiles) Close() error {
	var errs []error
	for _, f := range []*os.File{h.Metrics, h.Pcap} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Start starts both agents. The initiator inherits the files.
func Start(start startFunc, files InheritedFiles) (_ *Pair, err error) {
	p := &Pair{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Kill())
		}
	}()
	if p.target, err = startRemote("the target", start, nil); err != nil {
		return nil, err
	}
	args, extra := files.args()
	if p.initiator, err = startRemote("the initiator", start, args, extra...); err != nil {
		return nil, err
	}
	p.target.peer, p.initiator.peer = p.initiator, p.target
	p.Close = p.Kill
	return p, nil
}

// Kill ends both agents. The kernel then removes their sockets, programs and namespaces.
func (p *Pair) Kill() error {
	var errs []error
	for _, r := range []*remote{p.initiator, p.target} {
		if r != nil {
			errs = append(errs, r.kill())
		}
	}
	return errors.Join(errs...)
}

// Pids returns the process IDs of both agents.
func (p *Pair) Pids() (target, initiator int) { return p.target.proc.Pid(), p.initiator.proc.Pid() }
