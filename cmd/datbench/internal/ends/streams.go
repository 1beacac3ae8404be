package ends

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
	"github.com/datxdp/datxdp/stream"
)

// streamName begins errors of the rows of package stream.
const streamName = "stream"

// streamPort is the port of the service of package stream. A port of an adapter is not a UDP port.
const streamPort = 1

// streamTarget serves the rows of package stream. It works like tcpTarget, which serves the rows of kernel TCP.
type streamTarget struct {
	tcpTarget
	a *workload.Adapter
}

func newStreamTarget(h *workload.Host, s plan.Station) (Target, error) {
	a, err := workload.OpenAdapter(h, s)
	if err != nil {
		return nil, err
	}
	lc := stream.ListenConfig{IA: a.IA}
	l, err := lc.Listen(context.Background(), streamPort)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	t := &streamTarget{tcpTarget{name: streamName, l: l}, a}
	t.wg.Go(t.serve)
	return t, nil
}

func (t *streamTarget) Close() error { return errors.Join(t.tcpTarget.Close(), t.a.Close()) }

// streamInitiator measures the rows of package stream. It works like tcpInitiator, which measures the rows of kernel
// TCP.
type streamInitiator struct {
	tcpInitiator
	a *workload.Adapter
}

func newStreamInitiator(h *workload.Host, s plan.Station) (Initiator, error) {
	a, err := workload.OpenAdapter(h, s)
	if err != nil {
		return nil, err
	}
	d := stream.Dialer{IA: a.IA, Timeout: workload.ConnectTimeout}
	to := netip.AddrPortFrom(s.Peer, streamPort).String()
	dial := func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "", to) }
	return &streamInitiator{tcpInitiator{name: streamName, mode: a.Attr.Mode, dial: dial}, a}, nil
}

func (i *streamInitiator) Close() error { return i.a.Close() }

// Run also reports the packets that the adapter has sent again or dropped.
func (i *streamInitiator) Run(ctx context.Context, row plan.Spec) (result.Result, error) {
	before := i.a.Losses()
	r, err := i.tcpInitiator.Run(ctx, row)
	lost := i.a.Losses().Since(before)
	r.Secure = i.a.Attr.Secure
	r.Retransmits, r.Drops = lost.Retransmits, lost.Drops
	return r, err
}
