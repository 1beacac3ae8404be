package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/result"
)

// overXDP runs the job in network namespaces that die with its agents.
func (j *job) overXDP(ctx context.Context) (*result.Report, error) {
	l := labLink()
	if _, err := j.plan(l); err != nil {
		return nil, err
	}
	p, err := startLab(j.files)
	if err != nil {
		return nil, err
	}
	if err := probe(ctx, p, l, j.options); err != nil {
		return nil, errors.Join(interrupted(ctx, err), p.close())
	}
	return j.execute(ctx, l, func() (*pair, error) {
		if first := p; first != nil {
			p = nil
			return first, nil
		}
		return startLab(j.files)
	})
}

func labLink() link {
	side := func(s lab.Side) end {
		return end{ia: "xdp:" + lab.Interface, ifname: lab.Interface, mac: s.MAC().String(), addr: s.Addr4()}
	}
	return link{
		name: "veth between two throw-away network namespaces", transport: transportXDP,
		target: side(lab.A), initiator: side(lab.B), mtu: 1500,
	}
}

// startLab starts both agents in namespaces of their own and joins them.
func startLab(files handed) (*pair, error) {
	if err := mayMakeNamespaces(); err != nil {
		return nil, err
	}
	p, err := startPair(startInNamespace, files)
	if err != nil {
		return nil, cannotNamespace(err)
	}
	var l *lab.Lab
	err = within(openLimit, "joining the namespaces", func() (err error) {
		l, err = lab.Join(p.target.proc.Pid(), p.initiator.proc.Pid(), lab.Options{})
		return err
	})
	if err != nil {
		return nil, errors.Join(cannotNamespace(err), p.kill())
	}
	p.setMTU, p.setOffloads = l.SetMTU, l.SetOffloads
	// The link goes first: a namespace takes its interfaces down at leisure.
	inner := p.close
	p.close = func() error { return errors.Join(within(openLimit, "deleting the link", l.Close), inner()) }
	return p, nil
}

func startInNamespace(cmd *exec.Cmd) (process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return lab.Start(cmd)
}

// mayMakeNamespaces asks for root before anything is tried: the reason is then a plain one.
func mayMakeNamespaces() error {
	if os.Geteuid() != 0 {
		return &cannotError{"not root, so no AF_XDP", "run as root"}
	}
	return nil
}

func cannotNamespace(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &cannotError{"no network namespaces here (" + result.OneLine(err.Error()) + ")",
			"run as root with CAP_SYS_ADMIN and CAP_NET_ADMIN"}
	}
	return err
}

// probe opens AF_XDP once at either end, so that a host without it is known before the first row.
func probe(ctx context.Context, p *pair, l link, cfg *options) error {
	ph := l.phase(cfg, kindRaw, engineNative, 0)
	err := p.openPhase(ctx, ph)
	if closeErr := p.closePhase(ctx); err == nil {
		err = closeErr
	}
	if err != nil {
		return &cannotError{"no AF_XDP here (" + err.Error() + ")", "see datbench doctor"}
	}
	return nil
}
