//go:build datprovider

package main_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/lab"
)

// TestCost measures how much more time a post and a dequeue take in C than in Go; go test -v prints the figures. It
// fails only if there are no figures.
func TestCost(t *testing.T) {
	requireProvider(t)
	cost := compile(t, "cost")
	alone(t, func(h *hosts) {
		out := h.start(lab.A, cost+" "+ia).wait()
		var post, dequeue float64
		if _, err := fmt.Sscanf(out, "post %f dequeue %f", &post, &dequeue); err != nil {
			h.t.Fatalf("%s: %v", out, err)
		}
		var goPost, goDequeue time.Duration
		err := h.lab.Do(lab.A, func() error {
			goPost, goDequeue = goCost(h.t, h.link(lab.A))
			return nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
		h.t.Logf("post: C %.0f ns, Go %d ns; dequeue: C %.0f ns, Go %d ns", post, goPost.Nanoseconds(), dequeue, goDequeue.Nanoseconds())
	})
}

const (
	costDepth  = 8192
	costRounds = 20
)

// goCost does the same in Go as testdata/cost.c.
func goCost(t *testing.T, name string) (post, dequeue time.Duration) {
	a := newGoHost(t, name)
	defer func() { must(t, a.ia.Close()) }()
	post, dequeue = time.Hour, time.Hour
	for range costRounds {
		p, d := a.round(t)
		post, dequeue = min(post, p), min(dequeue, d)
	}
	return post, dequeue
}

type goHost struct {
	ia   *dat.IA
	pz   *dat.PZ
	lmr  *dat.LMR
	addr netip.Addr
}

func newGoHost(t *testing.T, name string) *goHost {
	ia, err := dat.Open(name, dat.DefaultOptions())
	must(t, err)
	pz, err := ia.CreatePZ()
	must(t, err)
	lmr, err := ia.CreateLMR(make([]byte, 64), pz, dat.MemAll)
	must(t, err)
	attr, err := ia.Query()
	must(t, err)
	return &goHost{ia, pz, lmr, attr.Address}
}

// round posts receives, ends the connection, which flushes them, and takes the completions.
func (h *goHost) round(t *testing.T) (post, dequeue time.Duration) {
	recv, err := h.ia.CreateEVD(costDepth, nil, dat.EVDDTO)
	must(t, err)
	events, err := h.ia.CreateEVD(16, nil, dat.EVDDTO|dat.EVDConnection|dat.EVDCR)
	must(t, err)
	x, err := h.ia.CreateEP(h.pz, dat.EPConfig{RecvEVD: recv, RequestEVD: events, ConnectEVD: events, Attr: &dat.EPAttr{MaxRecvDTOs: costDepth, MaxRequestDTOs: 1}})
	must(t, err)
	y, err := h.ia.CreateEP(h.pz, dat.EPConfig{RecvEVD: events, RequestEVD: events, ConnectEVD: events})
	must(t, err)
	psp, err := h.ia.CreatePSP(9, events, dat.PSPConsumer)
	must(t, err)
	iov := []dat.LMRTriplet{h.lmr.Segment(0, 64)}
	start := time.Now()
	for i := range uint64(costDepth) {
		_ = x.PostRecv(iov, i, 0)
	}
	post = time.Since(start) / costDepth

	must(t, y.Connect(h.addr, 9, time.Minute, nil))
	var ev dat.Event
	await := func(n dat.EventNumber, ep *dat.EP) {
		for ev.Number != n || ev.EP != ep {
			_, err := events.Wait(time.Minute, 1, &ev)
			must(t, err)
			if ev.CR != nil {
				must(t, ev.CR.Accept(x, nil))
			}
		}
	}
	await(dat.EventEstablished, x)
	must(t, x.Disconnect(dat.CloseAbrupt))
	await(dat.EventDisconnected, x)
	start = time.Now()
	for range costDepth {
		must(t, recv.Dequeue(&ev))
	}
	dequeue = time.Since(start) / costDepth
	must(t, x.Free())
	must(t, y.Free())
	must(t, psp.Free())
	must(t, recv.Free())
	must(t, events.Free())
	return post, dequeue
}

func must(t *testing.T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// link returns the description of the device of a side.
func (h *hosts) link(s lab.Side) string {
	switch {
	case h.plain:
		return "udp:" + s.Addr4().String() + " offload=off"
	case strings.Contains(h.t.Name()+"/", "/udp/"):
		return "udp:" + s.Addr4().String()
	}
	return "xdp:" + lab.Interface
}
