package main

import (
	"context"
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
			p.kill()
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
	p.close = func() error { p.kill(); return nil }
	return p, nil
}

// kill ends both agents. The kernel takes their sockets, programs and namespaces with them.
func (p *pair) kill() {
	for _, r := range []*remote{p.initiator, p.target} {
		if r != nil {
			r.proc.Kill()
		}
	}
}
