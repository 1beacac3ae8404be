package wire

import (
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// closedConn is what remains of a connection that both ends know to be closed, as in TIME-WAIT of TCP (RFC 9293 §3.3.2) and
// in the closing state of QUIC (RFC 9000 §10.2.1). Packets of it may still come: late ones, and repeats of Close. A Reset
// would answer them otherwise.
type closedConn struct {
	cid, tag uint32     // our connection ID, and the verification tag of the peer's packets
	peerTag  uint32     // verification tag of our packets, and so of Closed
	peer     netip.Addr // address of the peer
	until    Time
	// In secure mode, answer is the Closed that answers repeats of Close, if isAnswered is true. The keys are overwritten
	// when the connection ends, so the answer is always the same packet.
	answer     sealedClosed
	isAnswered bool
}

// sealedClosed is a sealed Closed packet.
type sealedClosed [proto.HeaderSize + seal.Overhead]byte

// closedConns are the closed connections of an engine, for timeWait after their end and at most maxClosedConns of them. If
// there are more, the oldest one is forgotten, and its packets get a Reset.
type closedConns struct {
	byID  map[uint32]*closedConn
	order []*closedConn // the oldest first
}

// add adds a connection that has just been closed.
func (s *closedConns) add(c *closedConn, now Time) {
	c.until = now.Add(timeWait)
	s.expire(now, maxClosedConns-1)
	if s.byID == nil {
		s.byID = make(map[uint32]*closedConn)
	}
	s.byID[c.cid] = c
	s.order = append(s.order, c)
}

// expire forgets the connections whose time is over, and the oldest ones beyond the given number.
func (s *closedConns) expire(now Time, most int) {
	n := 0
	for ; n < len(s.order) && (len(s.order)-n > most || s.order[n].until <= now); n++ {
		c := s.order[n]
		s.order[n] = nil
		if s.byID[c.cid] == c { // otherwise a later connection has the same ID
			delete(s.byID, c.cid)
		}
	}
	s.order = s.order[n:]
}

// find returns the closed connection with an ID and an address of the peer, or nil.
func (s *closedConns) find(cid uint32, peer netip.Addr, now Time) *closedConn {
	s.expire(now, maxClosedConns)
	if c := s.byID[cid]; c != nil && c.peer == peer {
		return c
	}
	return nil
}

// has reports whether a connection is closed at the peer.
func (s *closedConns) has(c *Conn) bool {
	x := s.byID[c.cid]
	return x != nil && x.peer == c.peerAddr && x.tag == c.tag
}

// noteClosed notes that a connection ends because the peer has closed it. answer is the answer to Close, and nil in plaintext
// mode.
func (c *Conn) noteClosed(answer *sealedClosed) {
	c.eng.table.closed.add(newClosed(c.cid, c.tag, c.peerTag, c.peerAddr, answer), c.eng.now)
}

func newClosed(cid, tag, peerTag uint32, peer netip.Addr, answer *sealedClosed) *closedConn {
	x := &closedConn{cid: cid, tag: tag, peerTag: peerTag, peer: peer}
	if answer != nil {
		x.answer, x.isAnswered = *answer, true
	}
	return x
}

// endClosed ends a linger whose connection is closed at the peer, too.
func (e *Engine) endClosed(slot int32, l *linger, answer *sealedClosed) {
	e.table.closed.add(newClosed(l.bye.CID, l.tag, l.header.Tag, l.peerAddr, answer), e.now)
	e.endLinger(slot, l)
}

// isLate reports whether a packet belongs to a connection that this end has closed, or that both ends have closed, in
// plaintext mode.
func (e *Engine) isLate(h *proto.Header, b *link.Buf) bool {
	from := e.source(b)
	if s, _, _ := e.table.findSlot(h.CID); s != nil && s.linger != nil {
		return from == s.linger.peerAddr && h.Tag == s.linger.tag
	}
	c := e.table.closed.find(h.CID, from, e.now)
	return c != nil && h.Tag == c.tag
}

// receiveLate handles a sealed packet of a closed connection. A repeat of Close gets the same answer as before, within the
// limit of stateless replies, because the first answer may have been lost. Other packets get none. It reports whether the
// reply has taken over the frame.
func (e *Engine) receiveLate(h *proto.Header, bufs []link.Buf, c *closedConn) (kept bool) {
	if h.Type != proto.Close || !c.isAnswered || !e.mayReply(bufs) {
		return false
	}
	b := bufs[0]
	b.Data = b.Data[:copy(b.Data, c.answer[:])]
	b.Path, b.Port, b.Flags = link.PathReply, e.portOf(h, &proto.Hello{}, e.link.Source(&bufs[0])), 0
	e.stats.TxPackets++
	e.sendReply(b)
	return true
}

// sendSealedClosed answers the Close of a secure connection, and returns the answer. The result is nil if the keys are used
// up.
func (e *Engine) sendSealedClosed(path link.Path, h *proto.Header, g *proto.Goodbye, k *keys) *sealedClosed {
	answer := new(sealedClosed)
	out := proto.Header{Type: proto.Closed, CID: g.CID, Ack: h.PSN, TS: e.now.Stamp()}
	out.Put(answer[:proto.HeaderSize])
	if _, ok := k.Seal(answer[:proto.HeaderSize], e.now); !ok {
		k.exhaust()
		return nil
	}
	var p packet
	if e.begin(&p, path, len(answer)+proto.TrailerSize, nil) {
		e.tx[p.firstFrame].Data = e.tx[p.firstFrame].Data[:copy(e.tx[p.firstFrame].Data, answer[:])]
		e.countSent()
	}
	return answer
}
