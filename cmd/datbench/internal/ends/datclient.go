package ends

import (
	"context"
	"net"
	"net/netip"
	"runtime"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// datInitiator measures rows of DAT operations. It opens connections for each row.
type datInitiator struct {
	a *workload.Adapter
	s plan.Station
	h *workload.Host
}

func newDATInitiator(h *workload.Host, s plan.Station) (Initiator, error) {
	a, err := workload.OpenAdapter(h, s)
	if err != nil {
		return nil, err
	}
	return &datInitiator{a, s, h}, nil
}

func (i *datInitiator) Close() error { return i.a.Close() }

func (i *datInitiator) Run(ctx context.Context, row plan.Spec) (r result.Result, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	release, err := measure.Pin(i.s.CPUs)
	if err != nil {
		return r, err
	}
	defer release()
	var c *workload.Conn
	act := &workload.Active{Adapter: i.a, Station: i.s, Host: i.h, Spec: i.complete(row)}
	err = retryWhileTaken(ctx, i.h.Wait, i.h.Waiting, func() (err error) {
		c, err = act.Connect(ctx)
		return err
	})
	if err != nil {
		return r, err
	}
	return act.Measure(c)
}

// complete fills in the values that depend on the adapter.
func (i *datInitiator) complete(row plan.Spec) plan.Spec {
	row.Depth, row.Secure = row.QueueDepth(), i.a.Attr.Secure
	if row.Op == result.Read {
		row.Depth = min(row.Depth, i.a.Attr.MaxRDMAReadPerEPOut)
	}
	if row.MTU == 0 {
		row.MTU = mtuOf(i.a.Attr.Address)
	}
	return row
}

// mtuOf returns the MTU of the interface that has the address; 0 if there is none.
func mtuOf(addr netip.Addr) int {
	ifis, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, ifi := range ifis {
		addrs, err := ifi.Addrs()
		for _, a := range addrs {
			prefix, parseErr := netip.ParsePrefix(a.String())
			if err != nil || parseErr != nil {
				continue
			}
			// The loopback interface serves all of 127.0.0.0/8, but lists one address.
			if prefix.Addr() == addr || addr.IsLoopback() && prefix.Contains(addr) {
				return ifi.MTU
			}
		}
	}
	return 0
}
