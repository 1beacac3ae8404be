package dat

import (
	"context"
	"log/slog"
)

// Logs tell of what happens seldom: an adapter is opened or closed (Info), a connection is asked for
// (Debug), established, ends or does not come about (Info) or breaks (Warn). Nothing is logged from inside
// an engine or with a lock held: what comes from the network is logged by the call that takes the event out,
// and what is freed with its dispatcher is not. A sampler bounds the lines, since peers cause some of them.

// logger is where an IA logs to.
func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(newSampler(o.Logger.Handler()))
}

// warner is where is logged what must not go unheard.
func (o *Options) warner() *slog.Logger {
	if o.Logger == nil {
		return slog.Default()
	}
	return o.Logger
}

// connectionEvent is the bit that the numbers of connection events have in common.
const connectionEvent = EventEstablished &^ 1

// notConnected is what the events of a connection that is not made mean.
var notConnected = map[EventNumber]string{
	EventPeerRejected:          "the program there refused",
	EventNonPeerRejected:       "nobody listens on the port or the qualifier there, or its backlog is full, or it has no resources",
	EventAcceptCompletionError: "the requester gave up, or did not confirm",
	EventTimedOut:              "no answer in time: is the peer there, on this port, and does a firewall pass UDP both ways?",
	EventUnreachable:           "no route to the peer, or no answer from its neighbourhood",
}

// log tells of an event of a connection that was taken out.
func (ev *Event) log() {
	level := slog.LevelInfo
	if ev.Number == EventBroken {
		level = slog.LevelWarn
	}
	log := ev.EP.ia.log
	if !log.Enabled(context.Background(), level) {
		return
	}
	message, attrs := "dat: not connected", ev.EP.attrs()
	switch ev.Number {
	case EventEstablished:
		message = "dat: established"
	case EventDisconnected:
		message = "dat: disconnected"
	case EventBroken:
		message, attrs = "dat: connection broke", append(attrs, "reason", ev.BreakReason)
	default:
		reason := any(ev.Number)
		if ev.BreakReason != 0 {
			reason = ev.BreakReason
		}
		attrs = append(attrs, "reason", reason, "hint", notConnected[ev.Number])
	}
	log.Log(context.Background(), level, message, attrs...)
}

// note is a message that waits until the locks of the call are given back: a handler may block, or call the
// adapter.
type note struct {
	log     *slog.Logger // nil: there is nothing to say
	level   slog.Level
	message string
	attrs   []any
}

// write is deferred before the first lock is taken, so that it runs after the last is given back.
func (n *note) write() {
	if n.log != nil {
		n.log.Log(context.Background(), n.level, n.message, n.attrs...)
	}
}

// attrs are what tells a connection from others.
func (ep *EP) attrs() []any {
	ep.mu.Lock()
	r := ep.remote
	ep.mu.Unlock()
	attrs := []any{"peer", r.addr, "qualifier", r.qual}
	if d := ep.drv.Load(); d != nil {
		attrs = append(attrs, "queue", d.eng.Index())
	}
	return attrs
}
