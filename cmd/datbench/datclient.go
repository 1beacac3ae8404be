package main

import (
	"context"
	"net"
	"net/netip"
	"runtime"

	"github.com/datxdp/datxdp/internal/result"
)

// datInitiator measures rows of DAT operations. Every row has a connection of its own.
type datInitiator struct {
	a *adapter
	s station
	h *host
}

func newDATInitiator(h *host, s station) (initiator, error) {
	a, err := openAdapter(h, s)
	if err != nil {
		return nil, err
	}
	return &datInitiator{a, s, h}, nil
}

func (i *datInitiator) close() error { return i.a.close() }

func (i *datInitiator) run(ctx context.Context, row Spec) (r result.Result, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	release, err := pin(i.s.CPUs)
	if err != nil {
		return r, err
	}
	defer release()
	var c *conn
	act := &active{adapter: i.a, station: i.s, host: i.h, row: i.complete(row)}
	err = await(ctx, i.h.wait, i.h.waiting, func() (err error) {
		c, err = act.connect(ctx)
		return err
	})
	if err != nil {
		return r, err
	}
	return act.measure(c)
}

// complete fills in what the adapter decides.
func (i *datInitiator) complete(row Spec) Spec {
	row.Depth = row.depth()
	if row.Op == result.Read {
		row.Depth = min(row.Depth, i.a.attr.MaxRDMAReadPerEPOut)
	}
	if row.MTU == 0 {
		row.MTU = mtuOf(i.a.attr.Address)
	}
	return row
}

// mtuOf is the MTU of the interface that has an address, 0 if none has.
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
			// Every address of 127.0.0.0/8 is there without being listed.
			if prefix.Addr() == addr || addr.IsLoopback() && prefix.Contains(addr) {
				return ifi.MTU
			}
		}
	}
	return 0
}
