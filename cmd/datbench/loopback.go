package main

import (
	"context"
	"net"
	"net/netip"

	"github.com/datxdp/datxdp/internal/result"
)

// overUDP runs the job between two addresses of the loopback interface.
func (j *job) overUDP(ctx context.Context, fallback string) (*result.Report, error) {
	report, err := j.execute(ctx, loopback(), func() (*pair, error) { return startPair(startHere, j.files) })
	if report != nil {
		report.Env.Fallback = fallback
	}
	return report, err
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
