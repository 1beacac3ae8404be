package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
)

// overUDP runs the job between two addresses of the loopback interface.
func (j *job) overUDP(ctx context.Context, metrics *os.File, fallback string) (*Report, error) {
	report, err := j.execute(ctx, loopback(), func() (*pair, error) { return startPair(startHere, metrics) })
	if err != nil {
		return nil, err
	}
	report.Env.Fallback = fallback
	return report, nil
}

func loopback() link {
	l := link{
		name: "kernel UDP between 127.0.0.1 and 127.0.0.2", transport: transportUDP,
		target:    end{ia: "udp:127.0.0.1", addr: netip.AddrFrom4([4]byte{127, 0, 0, 1})},
		initiator: end{ia: "udp:127.0.0.2", addr: netip.AddrFrom4([4]byte{127, 0, 0, 2})},
	}
	ifis, err := net.Interfaces()
	if err != nil {
		return l
	}
	for _, ifi := range ifis {
		if ifi.Flags&net.FlagLoopback != 0 {
			l.mtu = ifi.MTU
		}
	}
	return l
}

// startPair starts both agents; the initiator serves metrics if there is a socket for it.
func startPair(start startFunc, metrics *os.File) (_ *pair, err error) {
	p := &pair{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.kill())
		}
	}()
	if p.target, err = startRemote("the target", start, nil); err != nil {
		return nil, err
	}
	var args []string
	var extra []*os.File
	if metrics != nil {
		args, extra = []string{"--metrics-fd", "3"}, []*os.File{metrics}
	}
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
