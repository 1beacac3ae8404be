package network

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire"
)

// host is a machine with an engine, and the application that uses it.
type host struct {
	world   *World
	number  int
	link    *simlink.Link
	host    *wire.Host
	engine  *wire.Engine
	region  *wire.Region
	work    *wire.Queue
	connect *wire.Queue
	arrived []*wire.Request
	broken  bool                  // a connection has ended
	flows   []*flow               // that begin at this host
	postAt  int64                 // when a flow of them may post
	stopped int64                 // the process is stopped until then
	expects map[uint64]*wire.Conn // connections for requests, by qualifier; others get a new one
}

// consumer gets the completions of a connection.
type consumer interface {
	completed(now int64, c *wire.Completion)
}

// seeded is a source of bytes for secrets and first numbers.
type seeded struct{ r *rand.Rand }

func (s seeded) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(s.r.Uint32())
	}
	return len(b), nil
}

const (
	regionBase = 1 << 28
	regionZone = 1
)

// addHost adds a host with an engine.
func (w *World) addHost(like simlink.Host) *host {
	h := &host{world: w, link: w.addLink(like), postAt: never, expects: make(map[uint64]*wire.Conn)}
	h.number = w.add(h)
	for len(w.hosts) < h.number {
		w.hosts = append(w.hosts, nil)
	}
	w.hosts = append(w.hosts, h)
	var err error
	if h.host, err = wire.NewHost(seeded{w.rng}, wire.Limits{}); err == nil {
		h.engine, err = h.host.NewEngine(h.link, wire.Time(w.now()))
	}
	if err == nil {
		h.region, err = h.host.Register(w.memory, regionBase, regionZone,
			wire.LocalRead|wire.LocalWrite|wire.RemoteRead|wire.RemoteWrite)
	}
	must(err)
	overflow := func() { panic("network: completion queue overflow") }
	h.work, h.connect = wire.NewQueue(4096, nil, overflow), wire.NewQueue(4096, nil, overflow)
	w.wake(h.number, w.now())
	return h
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("network: %v", err))
	}
}

// Arrive implements wire.Service.
func (h *host) Arrive(r *wire.Request) bool {
	h.arrived = append(h.arrived, r)
	return true
}

// turn implements machine.
func (h *host) turn(now int64) (next int64, packets int) {
	if now < h.stopped {
		return h.stopped, 0
	}
	waiting, before := h.link.Pending(), h.link.Sent()
	h.engine.Poll(wire.Time(now))
	packets = waiting - h.link.Pending()
	h.accept()
	h.complete(now)
	if now >= h.postAt {
		h.postDue(now)
	}
	packets += int(h.link.Sent() - before)
	if h.link.Pending() > 0 {
		return now, packets
	}
	return min(int64(h.engine.Next()), h.postAt), packets
}

// connectTo begins to connect c to a host.
func (h *host) connectTo(to *host, c *wire.Conn, qual uint64) {
	must(to.host.Listen(qual, to))
	path, err := h.link.Resolve(to.link.Local(), uint16(qual))
	must(err)
	must(h.engine.Connect(c, wire.Dial{Path: path, Host: to.link.Local().Addr(), Qual: qual, Timeout: time.Minute, Completions: h.queues()}))
	h.world.wake(h.number, h.world.now())
}

// accept accepts the connections that were requested.
func (h *host) accept() {
	for _, r := range h.arrived {
		c := h.expects[r.Qual]
		if c == nil {
			c = h.host.NewConn(h.config(0))
		}
		path, err := h.link.Resolve(r.From, uint16(r.Qual))
		if err == nil {
			err = h.engine.Accept(r, c, path, nil, h.queues())
		}
		must(err)
	}
	h.arrived = h.arrived[:0]
}

func (h *host) queues() wire.CompletionQueues {
	return wire.CompletionQueues{Recv: h.work, Request: h.work, Connect: h.connect}
}

func (h *host) config(requests int) wire.ConnConfig {
	return wire.ConnConfig{Zone: regionZone, MaxRecv: 1, MaxRequest: max(requests, 1), MaxRecvIOV: 1, MaxRequestIOV: 1}
}

// complete gives completions to their consumers.
func (h *host) complete(now int64) {
	var c wire.Completion
	for h.work.Pop(&c) {
		if c.Status == wire.StatusSuccess {
			c.Conn.User.(consumer).completed(now, &c)
		}
	}
	for h.connect.Pop(&c) {
		switch {
		case c.Kind == wire.KindEstablished || c.Conn.User == stranger:
		case h.world.mayBreak:
			h.broken = true
		default:
			panic(fmt.Sprintf("network: host %d: %+v", h.number, c))
		}
	}
}

// postDue posts what the flows may post now.
func (h *host) postDue(now int64) {
	h.postAt = never
	for _, f := range h.flows {
		f.post(now)
	}
}

// stop keeps a host from doing anything for a time, as if its process were stopped.
func (h *host) stop(d time.Duration) { h.stopped = h.world.now() + int64(d) }
