package wire

import (
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// The kernel of a process that has ended answers its packets with ICMP port unreachable, which quotes the packet. A
// report counts only if it quotes the verification tag of a connection to that address and port. Kernels limit the
// rate of these messages, so that a report counts for all connections to the port: each asks its peer, and breaks
// if that does not answer while a later packet to the port is refused too. One that is being asked for ends when a later
// Connect is refused too. Nothing is sent to a peer that is known to have ended: thousands of connections to it that send
// Close, each answered by ICMP and repeated, keep the other connections of the engine waiting.

// closedPort is an address and port that was reported.
type closedPort struct {
	at         netip.AddrPort
	sent       uint32 // time stamp of the newest packet that was refused
	lastReport Time   // newest report
	toSearch   int    // slots of the connection table still to be searched
	peerEnded  bool   // a connection broke for it
}

// refusals is the engine's part.
type portReports struct {
	link  link.Reporter // nil if the link learns of none
	batch [reportBatch]link.Report
	known [maxClosedPorts]closedPort
	n     int // of known in use
}

const (
	// maxClosedPorts is how many ports are searched for at one time; a connection to another one breaks when
	// its own packets are reported twice. reportBatch is how many reports a Poll takes in, searchBatch
	// how many slots of the connection table it searches: each may send a probe, and the kernel answers it by ICMP.
	// With 64 and 10000 connections a ping-pong beside them over loopback stands still for 120 to 830 ms, with 8 for 20 ms.
	maxClosedPorts = 8
	reportBatch    = 16
	searchBatch    = 8
)

// destination is where packets on a path go; zero if the link does not tell.
func (r *portReports) destination(p link.Path) netip.AddrPort {
	if r.link == nil {
		return netip.AddrPort{}
	}
	return r.link.Destination(p)
}

// takePortReports handles what the link has learnt.
func (e *Engine) takePortReports() {
	r := &e.portReports
	for i := range r.batch[:r.link.Refused(r.batch[:])] {
		e.stats.Unreachable++
		if !e.handlePortReport(&r.batch[i]) {
			e.stats.UnreachableIgnored++
		}
	}
	if r.n == 0 {
		return
	}
	for i := range r.known[:r.n] {
		if k := &r.known[i]; k.toSearch > 0 {
			e.search(k)
			break // one at a time
		}
	}
	r.forget(e.now)
}

// refused handles a report. It reports false if the report quotes no packet that left recently.
func (e *Engine) handlePortReport(report *link.Report) bool {
	var h proto.Header
	if !h.Parse(report.Quoted()) || !e.sentSince(h.TS, e.now.Add(-challengeAckLimit)) {
		return false
	}
	if h.Type == proto.Connect {
		return e.handleConnectReport(report, &h)
	}
	name, ok := e.host.peers.find(peerKey{addressOf(report.To.Addr()), h.CID, h.Tag})
	if !ok || report.To != name.at {
		return false
	}
	c := e.lookup(name.cid) // nil if it is another engine's, or over and its Close was refused
	asks := c != nil && c.alive()
	if asks && !c.hasSent(h.PSN) {
		return false
	}
	e.portReports.note(report.To, h.TS, e.now, len(e.table.slots))
	if asks && c.handleLostReport(h.TS) {
		c.peerEnded()
	}
	return true
}

// handleConnectReport handles a report that quotes a Connect, which names its sender in the Hello.
func (e *Engine) handleConnectReport(report *link.Report, h *proto.Header) bool {
	cid, tag, ok := proto.Caller(report.Quoted())
	c := e.lookup(cid)
	if !ok || c == nil || !c.awaitsAccept() || tag != c.tag || h.PSN != c.sent.Nxt || report.To != e.portReports.link.Destination(c.path) {
		return false
	}
	e.portReports.note(report.To, h.TS, e.now, len(e.table.slots))
	c.connectPortClosed(h.TS)
	return true
}

// connectPortClosed handles a report that the port to which a connection is asked for has no owner, about a Connect of this attempt
// or another with a time stamp. As with "nobody listens", the peer may be about to start: the report is believed listen
// grace after the first one, and of a Connect that left after that. Each Challenge begins anew.
func (c *Conn) connectPortClosed(sent uint32) {
	d, grace := &c.dial, c.host.limits.ListenGrace
	switch {
	case d.graceEnd == 0:
		d.graceEnd = c.eng.now.Add(grace)
	case c.eng.now >= d.graceEnd && c.eng.sentSince(sent, d.graceEnd.Add(1<<clock.StampShift-grace)):
		c.why = BreakPort
		c.end(KindRefused, StatusFlushed)
	}
}

// note remembers a report that counts, and has the connection table searched.
func (r *portReports) note(at netip.AddrPort, sent uint32, now Time, slots int) {
	for i := range r.known[:r.n] {
		if k := &r.known[i]; k.at == at {
			k.lastReport = now
			if int32(sent-k.sent) > 0 {
				k.sent = sent
			}
			if k.toSearch == 0 {
				k.toSearch = slots
			}
			return
		}
	}
	if r.n < len(r.known) {
		r.known[r.n] = closedPort{at: at, sent: sent, lastReport: now, toSearch: slots}
		r.n++
	}
}

// search asks the peers of connections to a reported port, in a part of the table, and ends those that did not
// answer.
func (e *Engine) search(k *closedPort) {
	for n := 0; k.toSearch > 0 && n < searchBatch; n++ {
		c := e.table.slots[k.toSearch-1].conn
		switch {
		case c == nil || !c.alive() && !c.awaitsAccept() || e.portReports.link.Destination(c.path) != k.at:
		case c.awaitsAccept():
			c.connectPortClosed(k.sent)
		case c.portClosed():
			c.peerEnded()
		case !c.sendChallengeAck():
			return // no frame: later
		}
		k.toSearch--
	}
}

// forget drops ports that were not reported for long.
func (r *portReports) forget(now Time) {
	for i := 0; i < r.n; i++ {
		if k := &r.known[i]; k.toSearch == 0 && now.Sub(k.lastReport) > challengeAckLimit {
			r.n--
			*k = r.known[r.n]
			i--
		}
	}
}

// closedSince is the port to which packets on a path go if a packet to it that left at a moment or later was refused;
// nil if none was.
func (e *Engine) closedSince(p link.Path, t Time) *closedPort {
	r := &e.portReports
	for i := range r.known[:r.n] {
		if k := &r.known[i]; k.at == r.link.Destination(p) && e.sentSince(k.sent, t) {
			return k
		}
	}
	return nil
}

// portClosedSince reports whether a packet that left at a moment or later was refused where a connection's packets go.
func (c *Conn) portClosedSince(t Time) bool { return c.eng.closedSince(c.path, t) != nil }

// peerEnded breaks a connection whose peer's process has ended: it is told of nothing, and nor is it by the other
// connections to its port that have not heard it since.
func (c *Conn) peerEnded() {
	if k := c.eng.closedSince(c.path, c.lastHeard); k != nil {
		k.peerEnded = true
	}
	c.failOldest(StatusTransport)
	c.why = BreakReason(proto.ReasonTimeout)
	c.end(KindBroken, StatusFlushed)
}

// peerGone reports whether the process at a connection's port is known to have ended since the peer was heard.
func (c *Conn) peerGone() bool {
	k := c.eng.closedSince(c.path, c.lastHeard)
	return k != nil && k.peerEnded
}

// next is when takePortReports has something to do though nothing is reported.
func (r *portReports) next(now Time) Time {
	for i := range r.known[:r.n] {
		if r.known[i].toSearch > 0 {
			return now
		}
	}
	return never
}
