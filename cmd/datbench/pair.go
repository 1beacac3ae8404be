package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/datxdp/datxdp/internal/result"
)

// pair is two agents and what lies between them.
type pair struct {
	target, initiator *remote
	// setMTU is nil where there is nothing to set.
	setMTU      func(mtu int) error
	setOffloads func(on bool) error
	// close ends both agents and takes the link away.
	close func() error
}

func (p *pair) openPhase(ctx context.Context, ph phase) error {
	if ph.mtu != 0 && p.setMTU != nil {
		if err := within(openLimit, "setting the MTU of the link", func() error { return p.setMTU(ph.mtu) }); err != nil {
			return err
		}
	}
	if err := p.offloads(ph, false); err != nil {
		return err
	}
	if _, err := p.target.call(ctx, command{Do: doServe, Station: &ph.target}); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if _, err := p.initiator.call(ctx, command{Do: doOpen, Station: &ph.initiator}); err != nil {
		return fmt.Errorf("initiator: %w", err)
	}
	return nil
}

// offloads switches them for a plain phase, where there is something to switch.
func (p *pair) offloads(ph phase, on bool) error {
	if !ph.plain || p.setOffloads == nil {
		return nil
	}
	return within(openLimit, "switching the offloads of the link", func() error { return p.setOffloads(on) })
}

func (p *pair) runRow(ctx context.Context, row Spec) result.Result {
	r, err := p.initiator.call(ctx, command{Do: doRun, Spec: &row})
	if err != nil {
		return failed(row, err)
	}
	return *r
}

// closePhase closes what is open at either end, also after a failure.
func (p *pair) closePhase(ctx context.Context) error {
	_, err := p.initiator.call(ctx, command{Do: doClose})
	if _, stopErr := p.target.call(ctx, command{Do: doStop}); err == nil {
		err = stopErr
	}
	return err
}

// handed are files that the initiator gets: a socket to serve metrics on, a file for a capture. Either
// may be nil.
type handed struct{ metrics, pcap *os.File }

// args name the files by the descriptors that a child sees them at.
func (h handed) args() (args []string, extra []*os.File) {
	const firstExtra = 3
	for _, f := range []struct {
		flag string
		file *os.File
	}{{"--metrics-fd", h.metrics}, {"--pcap-fd", h.pcap}} {
		if f.file != nil {
			args = append(args, f.flag, strconv.Itoa(firstExtra+len(extra)))
			extra = append(extra, f.file)
		}
	}
	return args, extra
}

func (h handed) close() error {
	var errs []error
	for _, f := range []*os.File{h.metrics, h.pcap} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// startPair starts both agents.
func startPair(start startFunc, files handed) (_ *pair, err error) {
	p := &pair{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.kill())
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
	p.close = p.kill
	return p, nil
}

// kill ends both agents. The kernel takes their sockets, programs and namespaces with them.
func (p *pair) kill() error {
	var errs []error
	for _, r := range []*remote{p.initiator, p.target} {
		if r != nil {
			errs = append(errs, r.kill())
		}
	}
	return errors.Join(errs...)
}
