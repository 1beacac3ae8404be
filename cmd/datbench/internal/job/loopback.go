package job

import (
	"context"
	"net"
	"net/netip"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// overUDP runs the job between two addresses of the loopback interface.
func (j *Job) overUDP(ctx context.Context, fallback string) (*result.Report, error) {
	report, err := j.execute(ctx, loopback(), func() (*agent.Pair, error) { return agent.Start(agent.StartLocal, j.Files) })
	if report != nil {
		report.Env.Fallback = fallback
	}
	return report, err
}

func loopback() plan.Link {
	l := plan.Link{
		Name: "kernel UDP between 127.0.0.1 and 127.0.0.2", Transport: plan.TransportUDP,
		Target:    plan.End{IA: "udp:127.0.0.1", Addr: netip.AddrFrom4([4]byte{127, 0, 0, 1})},
		Initiator: plan.End{IA: "udp:127.0.0.2", Addr: netip.AddrFrom4([4]byte{127, 0, 0, 2})},
	}
	ifis, err := net.Interfaces()
	if err != nil {
		return l
	}
	for _, ifi := range ifis {
		if ifi.Flags&net.FlagLoopback != 0 {
			l.MTU = ifi.MTU
		}
	}
	return l
}
