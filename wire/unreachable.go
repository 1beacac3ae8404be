package wire

import (
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// When a process has ended, its kernel answers a packet to the process's UDP port with ICMP port unreachable. This
// message quotes the packet. The link delivers such messages as reports. A report counts only if it quotes the
// verification tag of a connection to that address and port.
//
// Kernels limit the rate of these messages, so most connections to a closed port get no report of their own. Therefore
// a report for one connection makes every connection to the port send a challenge ACK. If the peer does not answer, and
// the kernel refuses a later packet to the port, the connection breaks. For a connection attempt, see
// connectPortClosed.
//
// A connection sends no Close to a process that is known to have ended. Otherwise thousands of connections would send
// and repeat Close, and the kernel would answer each Close with ICMP. This work would delay the other connections of
// the engine.

// closedPort is an address and port that a report has named.
type closedPort struct {
	at         netip.AddrPort
	sent       uint32 // time stamp of the newest refused packet
	lastReport Time   // when the newest report came
	toSearch   int    // number of slots of the connection table that are not searched yet
	peerEnded  bool   // a connection to the port has broken, so the process is known to have ended
}

// portReports holds the reports of closed ports.
type portReports struct {
	link  link.Reporter // nil if the link has no reports
	batch [reportBatch]link.Report
	known [maxClosedPorts]closedPort
	n     int // entries of known in use
	turn  int // entry of known whose connections the engine searches next
}

const (
	// maxClosedPorts bounds the closed ports for which the engine searches the connection table. If ICMP reports more
	// ports as unreachable, a port of an address or network with fewer places replaces one of an address or network with
	// more (see newPlace). The engine does not search for connections to the other ports. Such a connection breaks only
	// after two reports that quote its own packets.
	maxClosedPorts = 8
	// reportBatch bounds the reports that one Poll handles.
	reportBatch = 16
	// For a port that a report has named, the engine searches its connections to that port. One Poll handles at most
	// searchBatch of them, because each may send a challenge ACK, which the peer's kernel answers with ICMP. With 10000
	// connections to a closed port, a ping-pong over loopback on another connection stops for 120 to 830 ms if
	// searchBatch is 64, and for 20 ms if it is 8.
	searchBatch = 8
	// searchSlots bounds the slots of the connection table that one Poll searches, whether or not it finds connections.
	// With 512, the search of a table of 65,000 free slots takes 128 Polls. With 8, it took 8192.
	searchSlots = 512
)

// destination returns the address and port to which packets on a path go. It is zero if the link has no reports.
func (r *portReports) destination(p link.Path) netip.AddrPort {
	if r.link == nil {
		return netip.AddrPort{}
	}
	return r.link.Destination(p)
}

// takePortReports handles new reports from the link and continues the search for connections to closed ports.
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
	for range r.n { // one port in each Poll, in turns
		r.turn = (r.turn + 1) % r.n
		if k := &r.known[r.turn]; k.toSearch > 0 {
			e.searchTable(k)
			break
		}
	}
	r.forget(e.now)
}

// handlePortReport handles a report. It reports false if the report quotes no recent packet of a connection.
func (e *Engine) handlePortReport(report *link.Report) bool {
	var h proto.Header
	if !h.Parse(report.Quoted()) || !e.sentSince(h.TS, e.now.Add(-challengeAckLimit)) {
		return false
	}
	if h.Type == proto.Connect {
		return e.handleConnectReport(report, &h)
	}
	name, ok := e.host.peers.find(e.peerKey(addressOf(report.To.Addr()), report.To, h.CID, h.Tag))
	if !ok || report.To != name.at {
		return false
	}
	if report.Why != link.RefusedPort { // the path may work again (a soft error of RFC 1122 §4.2.3.9): silence decides
		return true
	}
	c := e.lookup(name.cid) // nil if the connection belongs to another engine, or only its linger is left
	asks := c != nil && c.alive()
	if asks && !(c.isOurTag(h.Tag) && c.hasSent(h.PSN)) {
		return false
	}
	e.portReports.noteClosed(report.To, h.TS, e.now, len(e.table.slots))
	if asks && c.handleLostReport(h.TS, h.Tag) {
		c.peerEnded()
	}
	return true
}

// handleConnectReport handles a report that quotes a Connect. It finds the connection attempt by the Hello in the
// quoted Connect. It reports false if no attempt of this engine sent that Connect.
func (e *Engine) handleConnectReport(report *link.Report, h *proto.Header) bool {
	cid, tag, ok := proto.Caller(report.Quoted())
	c := e.lookup(cid)
	if !ok || c == nil || !c.awaitsAccept() || tag != c.tag || h.PSN != c.sent.Nxt || report.To != e.portReports.link.Destination(c.path) {
		return false
	}
	if report.Why != link.RefusedPort {
		c.connectUnreachable(report.Why)
		return true
	}
	e.portReports.noteClosed(report.To, h.TS, e.now, len(e.table.slots))
	c.connectPortClosed(h.TS)
	return true
}

// connectPortClosed handles a report that the UDP port of a connection attempt is closed. The kernel of the peer
// has refused a Connect, perhaps that of another attempt. Its time stamp is sentTS. The peer's program may be about to
// start, so the first report only begins ListenGrace. After ListenGrace, a report ends the attempt if it quotes a
// Connect that was sent after the first report. A Challenge resets ListenGrace, because it shows that a program runs.
func (c *Conn) connectPortClosed(sentTS uint32) {
	d, grace := &c.dial, c.host.limits.ListenGrace
	switch {
	case d.opening != nil:
		d.opening.hint = BreakPort
	case d.graceEnd == 0:
		d.graceEnd = c.eng.now.Add(grace)
	case c.eng.now >= d.graceEnd && c.eng.sentSince(sentTS, d.graceEnd.Add(1<<clock.StampShift-grace)):
		c.breakReason = BreakPort
		c.end(KindRefused, StatusFlushed)
	}
}

// unreachableReasons has the reason of an attempt that a report ends.
var unreachableReasons = [...]BreakReason{
	link.RefusedPort:   BreakPort,
	link.RefusedHost:   BreakNoHost,
	link.RefusedNet:    BreakNoNet,
	link.RefusedPolicy: BreakProhibited,
}

// connectUnreachable handles a report that a Connect of this attempt did not arrive, because of the path. The report ends
// the attempt, as it ends one of TCP in SYN-SENT, but not before the attempt is as old as ListenGrace: a route may be about
// to change. A Challenge in that time cancels the report.
func (c *Conn) connectUnreachable(why link.Refusal) {
	reason := unreachableReasons[why]
	if c.dial.opening != nil { // nobody has authenticated the report
		c.dial.opening.hint = reason
		return
	}
	c.dial.unreachable = reason
	c.setDeadline(max(c.eng.now, c.openedAt.Add(c.host.limits.ListenGrace)))
}

// isUnreachable reports whether a report ends the attempt now.
func (c *Conn) isUnreachable() bool {
	return c.dial.unreachable != 0 && c.eng.now.Sub(c.openedAt) >= c.host.limits.ListenGrace
}

// noteClosed stores a report and starts a search for other connections to the port.
func (r *portReports) noteClosed(dest netip.AddrPort, sentTS uint32, now Time, slots int) {
	for i := range r.known[:r.n] {
		if k := &r.known[i]; k.at == dest {
			k.lastReport = now
			if int32(sentTS-k.sent) > 0 {
				k.sent = sentTS
			}
			if k.toSearch == 0 {
				k.toSearch = slots
			}
			return
		}
	}
	if k := r.newPlace(dest); k != nil {
		*k = closedPort{at: dest, sent: sentTS, lastReport: now, toSearch: slots}
	}
}

// newPlace returns a place for a port that has none, or nil. If all places are taken, the port gets a place of a network
// that has at least two more than the network of the port. Otherwise it gets a place of an address that has at least two
// more than the address of the port. The place whose last report is the oldest is replaced. So a peer that forges
// reports about its own ports takes no place from others.
func (r *portReports) newPlace(dest netip.AddrPort) (place *closedPort) {
	if r.n < len(r.known) {
		r.n++
		return &r.known[r.n-1]
	}
	addr, network := r.places(dest)
	for i := range r.known {
		k := &r.known[i]
		byAddr, byNetwork := r.places(k.at)
		if byNetwork <= network+1 && (byNetwork < network || byAddr <= addr+1) {
			continue
		}
		if place == nil || k.lastReport < place.lastReport {
			place = k
		}
	}
	return place
}

// places returns how many places of known the address of a port has, and how many the network of that address has.
func (r *portReports) places(at netip.AddrPort) (byAddr, byNetwork int) {
	addr, network := holders(addressOf(at.Addr()))
	for i := range r.known[:r.n] {
		a, n := holders(addressOf(r.known[i].at.Addr()))
		if a == addr {
			byAddr++
		}
		if n == network {
			byNetwork++
		}
	}
	return byAddr, byNetwork
}

// searchTable looks in a part of the connection table for connections to a closed port. On an established
// connection, it sends a challenge ACK. But if the peer has had time to answer an earlier challenge ACK, and the peer's
// kernel has refused a packet that left later, it breaks the connection (see portClosed). For a connection attempt, it
// calls connectPortClosed, which ends the attempt after ListenGrace.
func (e *Engine) searchTable(k *closedPort) {
	for found, n := 0, 0; k.toSearch > 0 && found < searchBatch && n < searchSlots; n++ {
		c := e.table.slots[k.toSearch-1].conn
		if c == nil || !c.alive() && !c.awaitsAccept() || e.portReports.link.Destination(c.path) != k.at {
			k.toSearch--
			continue
		}
		found++
		switch {
		case c.awaitsAccept():
			c.connectPortClosed(k.sent)
		case c.portClosed():
			c.peerEnded()
		case !c.sendChallengeAck():
			return // the link has no frame; the next Poll continues here
		}
		k.toSearch--
	}
}

// forget deletes the ports whose last report is older than challengeAckLimit.
func (r *portReports) forget(now Time) {
	for i := 0; i < r.n; i++ {
		if k := &r.known[i]; k.toSearch == 0 && now.Sub(k.lastReport) > challengeAckLimit {
			r.n--
			*k = r.known[r.n]
			i--
		}
	}
}

// closedSince returns the entry for the destination of path p, if a packet that was sent there at time t or later was
// refused. Otherwise it returns nil.
func (e *Engine) closedSince(p link.Path, t Time) *closedPort {
	r := &e.portReports
	for i := range r.known[:r.n] {
		if k := &r.known[i]; k.at == r.link.Destination(p) && e.sentSince(k.sent, t) {
			return k
		}
	}
	return nil
}

// portClosedSince reports whether a packet sent to the peer's port at time t or later was refused.
func (c *Conn) portClosedSince(t Time) bool { return c.eng.closedSince(c.path, t) != nil }

// peerEnded breaks a connection because the peer process has ended without sending Close.
//
// If no packet from the peer has arrived since this side sent the packet that the peer's kernel refused, peerEnded also
// records that the process behind the peer's port has ended. From then on, the other connections to the port end
// without sending Close. An exception is a connection that has received a packet since the refused packet was sent: its
// peer may still run.
func (c *Conn) peerEnded() {
	if k := c.eng.closedSince(c.path, c.lastHeard); k != nil {
		k.peerEnded = true
	}
	c.failOldest(StatusTransport)
	c.breakReason = BreakEnded
	c.end(KindBroken, StatusFlushed)
}

// peerGone reports whether the peer process is known to have ended after it sent its last packet.
func (c *Conn) peerGone() bool {
	k := c.eng.closedSince(c.path, c.lastHeard)
	return k != nil && k.peerEnded && c.keys == nil
}

// next returns when Poll must run to continue the search even if no report comes: now or never.
func (r *portReports) next(now Time) Time {
	for i := range r.known[:r.n] {
		if r.known[i].toSearch > 0 {
			return now
		}
	}
	return never
}
