package wire

import (
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// linger is what remains of a connection that this side has closed. The engine repeats Close until it gets Closed from
// the peer, has sent Close closeTries times, or gets an ICMP message which says that the peer's port is closed.
type linger struct {
	path      link.Path
	peerAddr  netip.Addr
	tag       uint32 // verification tag of the peer's packets
	header    proto.Header
	bye       proto.Goodbye
	lastHeard Time          // when the peer's last packet came
	tries     int           // Close packets sent
	retryWait time.Duration // time to the next repeat; doubles
	passive   bool          // it still counts as a connection of the peer's address
	isReply   bool          // the peer has never confirmed the connection, so Close is a reply (see replyTime)
	keys      *keys         // in secure mode, otherwise nil
	permit    *permit       // in secure mode, otherwise nil
}

// lingerKey returns the key under which an ICMP message that quotes Close finds the connection.
func (e *Engine) lingerKey(l *linger) peerKey {
	return e.peerKey(l.peerAddr, e.portReports.destination(l.path), l.header.CID, l.header.Tag)
}

// sendClose sends Close and arms its repeat, with exponential back-off.
func (e *Engine) sendClose(slot int32, l *linger) {
	l.header.TS = e.now.Stamp()
	switch {
	case !l.isReply:
		e.buildClose(l)
	case e.mayReplyTo(l.peerAddr):
		measured := e.beginReply(l.peerAddr)
		e.buildClose(l)
		e.endReply(l.peerAddr, measured)
	}
	l.tries++
	e.timers.set(slot, e.now.Add(l.retryWait), silentAfter)
	l.retryWait = min(2*l.retryWait, maxRTO)
}

// buildClose builds Close, if the link has a frame.
func (e *Engine) buildClose(l *linger) {
	var p packet
	if e.begin(&p, l.path, proto.HeaderSize+proto.GoodbyeSize+l.keys.trailer(), l.keys) {
		l.bye.Put(p.reserve(proto.GoodbyeSize))
		p.finish(&l.header)
	}
}

// endLinger frees the slot and the path of a lingering connection, and returns its place in the quota of connections.
// The connection keeps the place until then. Otherwise a peer could fill the table with lingering connections.
func (e *Engine) endLinger(slot int32, l *linger) {
	e.timers.stop(slot)
	if l.passive {
		e.conns.freePlace(l.peerAddr)
	}
	e.host.peers.remove(e.lingerKey(l), l.bye.CID)
	releasePermit(&l.permit)
	l.keys.wipe()
	e.link.Release(l.path)
	e.table.freeSlot(slot)
}
