package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/result"
)

// overXDP runs the job in network namespaces that disappear with its agents.
func (j *Job) overXDP(ctx context.Context) (*result.Report, error) {
	l := labLink()
	if _, err := j.plan(l); err != nil {
		return nil, err
	}
	p, err := startLab(j.Files)
	if err != nil {
		return nil, err
	}
	if err := probe(ctx, p, l, j.Options); err != nil {
		return nil, errors.Join(agent.Interrupted(ctx, err), p.Close())
	}
	return j.execute(ctx, l, func() (*agent.Pair, error) {
		if first := p; first != nil {
			p = nil
			return first, nil
		}
		return startLab(j.Files)
	})
}

func labLink() plan.Link {
	side := func(s lab.Side) plan.End {
		return plan.End{IA: "xdp:" + lab.Interface, Interface: lab.Interface, MAC: s.MAC().String(), Addr: s.Addr4()}
	}
	return plan.Link{
		Name: "veth between two throw-away network namespaces", Transport: plan.TransportXDP,
		Target: side(lab.A), Initiator: side(lab.B), MTU: 1500,
	}
}

// startLab starts both agents in new namespaces and connects the namespaces with a veth pair.
func startLab(files agent.InheritedFiles) (*agent.Pair, error) {
	if err := mayMakeNamespaces(); err != nil {
		return nil, err
	}
	p, err := agent.Start(startInNamespace, files)
	if err != nil {
		return nil, cannotNamespace(err)
	}
	var l *lab.Lab
	target, initiator := p.Pids()
	err = plan.Within(plan.OpenLimit, "joining the namespaces", func() (err error) {
		l, err = lab.Join(target, initiator, lab.Options{})
		return err
	})
	if err != nil {
		return nil, errors.Join(cannotNamespace(err), p.Kill())
	}
	p.SetMTU, p.SetOffloads = l.SetMTU, l.SetOffloads
	// Delete the link first. The kernel would otherwise delete the interfaces later, some time after the last process
	// in their namespace has ended.
	inner := p.Close
	p.Close = func() error { return errors.Join(plan.Within(plan.OpenLimit, "deleting the link", l.Close), inner()) }
	return p, nil
}

func startInNamespace(cmd *exec.Cmd) (agent.Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return lab.Start(cmd)
}

// mayMakeNamespaces returns an error if this process is not root. It is called first, because the errors of later steps
// would not name this simple cause.
func mayMakeNamespaces() error {
	if os.Geteuid() != 0 {
		return &UnavailableError{"not root, so no AF_XDP", "run as root"}
	}
	return nil
}

func cannotNamespace(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &UnavailableError{"no network namespaces here (" + result.OneLine(err.Error()) + ")",
			"run as root with CAP_SYS_ADMIN and CAP_NET_ADMIN"}
	}
	return err
}

// probe opens AF_XDP once at each end and closes it again, to detect a host without AF_XDP before the first row.
func probe(ctx context.Context, p *agent.Pair, l plan.Link, cfg *plan.Options) error {
	ph := l.Phase(cfg, plan.KindRaw, plan.EngineNative, 0)
	err := p.OpenPhase(ctx, ph)
	if closeErr := p.ClosePhase(ctx); err == nil {
		err = closeErr
	}
	if err != nil {
		return &UnavailableError{"no AF_XDP here (" + err.Error() + ")", "see datbench doctor"}
	}
	return nil
}
