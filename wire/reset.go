package wire

import (
	"net/netip"
	"sync"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// A host that has restarted does not know the connections that it had before. It answers their packets with Reset,
// which quotes the packet's header, including the verification tag. So sending Reset needs no state.

// peerKey identifies a connection by the peer's address, the peer's connection ID, and the verification tag of our
// packets. The tag distinguishes two processes at one address that have chosen the same ID. An attacker does not know
// the tag.
type peerKey struct {
	addr     netip.Addr
	port     uint16 // in secure mode, where tag is 0
	cid, tag uint32
}

// peerName is what the table stores for a peerKey.
type peerName struct {
	cid uint32         // our ID of the connection
	at  netip.AddrPort // destination of our packets; zero if the link has no reports
}

// The type peers is the table of the host's connections by peerKey. It finds the connection for a Reset, and for an
// ICMP message that quotes a packet of ours. Both may arrive at any engine, so the table has a lock.
type peers struct {
	mu   sync.Mutex
	cids map[peerKey]peerName
}

func (p *peers) add(k peerKey, n peerName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cids == nil {
		p.cids = make(map[peerKey]peerName)
	}
	p.cids[k] = n
}

func (p *peers) remove(k peerKey, cid uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cids[k].cid == cid {
		delete(p.cids, k)
	}
}

func (p *peers) find(k peerKey) (n peerName, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok = p.cids[k]
	return n, ok
}

// handleUnknown handles a packet with an unknown connection ID, or with a wrong tag or source address. If the ID names
// another engine, handleUnknown forwards the packet to that engine. A late packet of a closed connection is dropped.
// Otherwise handleUnknown answers with Reset, in the packet's own frame and within the limit of stateless replies.
func (e *Engine) handleUnknown(h *proto.Header, bufs []link.Buf) (kept bool) {
	if e.forwardPacket(h, bufs) || e.isLate(h, &bufs[0]) {
		return false
	}
	e.stats.UnknownConnection++
	if s, _, _ := e.table.findSlot(h.CID); s != nil && s.linger != nil {
		return false // the closed connection still repeats Close
	}
	if !e.mayReply(bufs) {
		return false
	}
	e.stats.Resets++
	out := resetOf(h, e.now)
	e.replyHeader(bufs, h, &out)
	return true
}

// resetOf returns the Reset that answers a packet with header h.
func resetOf(h *proto.Header, now Time) proto.Header {
	return proto.Header{Type: proto.Reset, CID: h.CID, PSN: h.PSN, Ack: h.Ack, TS: now.Stamp(), Echo: h.TS, Tag: h.Tag}
}

// handleReset handles a Reset. A Reset names the connection by the ID that the peer has chosen for it. handleReset
// replaces that ID by our ID, which names the engine that owns the connection, and forwards the Reset to that engine.
func (e *Engine) handleReset(h *proto.Header, bufs []link.Buf) {
	if !e.forwarded {
		name, ok := e.host.peers.find(e.senderKey(h, &bufs[0]))
		if !ok {
			e.stats.UnknownConnection++
			return
		}
		h.CID = name.cid
		h.Put(bufs[0].Data)
		body := len(bufs[0].Data) - proto.TrailerSize
		proto.PutTrailer(bufs[0].Data[body:], proto.CRC(0, bufs[0].Data[:body]))
		if e.forwardPacket(h, bufs) {
			return
		}
	}
	c := e.lookup(h.CID)
	switch {
	case c != nil && c.hasSentAccept(h) && e.source(&bufs[0]) == c.peerAddr:
		c.handleLostAccept()
	case c == nil || !c.alive(), !c.isOurTag(h.Tag), e.source(&bufs[0]) != c.peerAddr:
		e.stats.UnknownConnection++
	case !c.hasSent(h.PSN):
		e.stats.Forged++
	case c.handleLostReport(h.Echo, h.Tag):
		c.failOldest(StatusTransport)
		c.finishAs(KindBroken, BreakEnded, proto.Goodbye{Reason: proto.ReasonTimeout}) // a peer that lives after all knows this reason
	}
}

// hasSentAccept reports whether a Reset quotes the Accept of this connection, which nothing has confirmed. In secure mode
// the PSN of the Accept is in its message 2, and the header has 0.
func (c *Conn) hasSentAccept(h *proto.Header) bool {
	return c.State() == Accepting && h.Tag == c.peerTag && (h.PSN == c.sent.Nxt || c.eng.secure && h.PSN == 0)
}

// handleLostAccept handles a Reset that answers Accept: the requester has given up. It needs no challenge, because the
// requester has not answered Accept, so no packet of it can be newer than the Reset. In secure mode nobody has
// authenticated the Reset, so a requester that is alive gets lostAcceptWait to confirm the connection.
func (c *Conn) handleLostAccept() {
	if c.eng.secure {
		c.dial.deadline = min(c.dial.deadline, c.eng.now.Add(lostAcceptWait))
		c.setDeadline(c.dial.deadline)
		return
	}
	c.end(KindAcceptFailed, StatusFlushed)
}
