package dat

import (
	"context"
	"log/slog"

	"github.com/datxdp/datxdp/wire"
)

// The package logs rare events:
//
//   - Debug: a connection request is sent, accepted or declined.
//   - Info: an adapter is opened or closed; a connection is established, ends, or fails to be established.
//   - Warn: a connection breaks.
//
// Nothing is logged inside an engine or with a lock held. The call that takes a connection event from its dispatcher
// logs the event. That a connection broke is logged by the call that takes the first failed completion, if it comes before
// the event: many programs take no events after a failure. Events that are lost when their dispatcher is freed are not logged. A sampler limits the number of
// lines, because peers decide how many connection events there are.

// logger returns the logger of an IA, with a sampler. Each line has the name of the IA. If Options.Logger is nil, the returned logger discards
// everything.
func (o *Options) logger() *slog.Logger {
	return o.sampled(o.handler())
}

// detachedLogger returns a logger as logger does, which does not wait for the handler.
func (o *Options) detachedLogger() *slog.Logger {
	return o.sampled(newDetached(o.handler()))
}

func (o *Options) sampled(h slog.Handler) *slog.Logger {
	return slog.New(newSampler(h)).With("ia", o.ia)
}

func (o *Options) handler() slog.Handler {
	if o.Logger == nil {
		return slog.DiscardHandler
	}
	return o.Logger.Handler()
}

// warner returns the logger for warnings that are logged even if Options.Logger is nil.
func (o *Options) warner() *slog.Logger {
	log := o.Logger
	if log == nil {
		log = slog.Default()
	}
	return log.With("ia", o.ia)
}

// connectionEvent is the bit that is set in the numbers of all connection events, and in no others.
const connectionEvent = EventEstablished &^ 1

// hint returns what to look at after an attempt to connect has failed. A reason that says more than the event decides.
func (ev *Event) hint() string {
	if h := notConnectedBecause[ev.BreakReason]; h != "" {
		return h
	}
	return notConnected[ev.Number]
}

// notConnectedBecause has the hints for reasons of secure mode, for which those of the events are wrong.
var notConnectedBecause = map[BreakReason]string{
	BreakHandshake: "the log and datxdp_handshakes_denied_total of the peer say why; the line of this host there may be missing, expired or for another address; with known=FILE, " +
		"the peer needs the option announce, and if it has a new key, its line in FILE is old",
	BreakResources: "the peer serves its share of connections for this address; in secure mode, connections= or bytes= of the line of this host may be the limit",
	BreakSecure:    "open the adapter with key=FILE, and name the peer in peers=FILE",
	BreakOption:    "if this end has a key, the peer is in plaintext mode",
}

// refusedBecause has a hint for each reason for which a handshake is refused by its content.
var refusedBecause = [wire.NumDenials]string{
	wire.DeniedKey:     "the requester expects another key of this host, or has another shared secret: give it the public key of this host",
	wire.DeniedUnknown: "no line of the file of peers has this key: add a line if this host may connect",
	wire.DeniedExpired: "its line in the file of peers has expired: write a later expires= if it may connect",
	wire.DeniedAddress: "from= in its line of the file of peers does not have this address",
	wire.DeniedService: "services= in its line of the file of peers does not have this qualifier",
	wire.DeniedLimit:   "it has reached a limit of its line in the file of peers (connections=, half-open=, rate=, bytes=), or has used wrong remote keys",
}

// refusalHint returns what to do about a refused handshake.
func (s *security) refusalHint(why wire.Denial) string {
	if why == wire.DeniedUnknown && s.options.PeersFile == "" {
		return "there is no file of peers, so nobody may connect: name one with peers=FILE"
	}
	return refusedBecause[why]
}

// notConnected has a hint for each event that ends an attempt to connect.
var notConnected = map[EventNumber]string{
	EventPeerRejected:          "the peer's program rejected the request",
	EventNonPeerRejected:       "at the peer nothing listens on the port or the qualifier, or the backlog is full, or resources are exhausted",
	EventAcceptCompletionError: "the requester gave up, or did not confirm",
	EventTimedOut:              "no answer in time: does the peer run, does it use this port, and does a firewall pass UDP both ways?",
	EventUnreachable:           "no route to the peer, or its link-layer address cannot be resolved",
}

const messageBroken = "dat: connection broke"

// logBroken logs that the connection broke, unless that has been logged, or it did not.
func (ep *EP) logBroken() {
	reason, broke := ep.conn.Broke()
	if broke && !ep.told.Swap(true) {
		ep.ia.log.Warn(messageBroken, append(ep.attrs(), "reason", BreakReason(reason))...)
	}
}

// log logs a connection event that was taken from its dispatcher.
func (ev *Event) log() {
	level := slog.LevelInfo
	if ev.Number == EventBroken {
		level = slog.LevelWarn
	}
	log := ev.EP.ia.log
	if !log.Enabled(context.Background(), level) || (ev.Number == EventBroken && ev.EP.told.Swap(true)) {
		return
	}
	message, attrs := "dat: not connected", ev.EP.attrs()
	switch ev.Number {
	case EventEstablished:
		message = "dat: established"
	case EventDisconnected:
		message = "dat: disconnected"
	case EventBroken:
		message, attrs = messageBroken, append(attrs, "reason", ev.BreakReason)
	default:
		reason := any(ev.Number)
		if ev.BreakReason != 0 {
			reason = ev.BreakReason
		}
		attrs = append(attrs, "reason", reason, "hint", ev.hint())
	}
	log.Log(context.Background(), level, message, attrs...)
}

// logLine is a log message that a call writes after it has released its locks, because a log handler may block or call
// the adapter.
type logLine struct {
	logger  *slog.Logger // nil: emit does nothing
	level   slog.Level
	message string
	attrs   []any
}

// emit logs the message. A caller defers emit before it takes the first lock, so that emit runs after the last unlock.
func (n *logLine) emit() {
	if n.logger != nil {
		n.logger.Log(context.Background(), n.level, n.message, n.attrs...)
	}
}

// attrs returns the log attributes that identify a connection.
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
