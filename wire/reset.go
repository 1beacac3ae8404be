package wire

import (
	"net/netip"
	"sync"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// A host that has restarted does not know the connections of its former life. It answers their packets
// with Reset, which repeats what the packet said, its verification tag among it, and needs no state.

// peerKey is how a connection is found by what its peer calls it. Two processes may share an address and choose the same
// ID: the tag, which is in every packet of ours, tells them apart, and is what a stranger does not know.
type peerKey struct {
	addr     netip.Addr
	cid, tag uint32
}

// peerName is the connection that a peer calls so.
type peerName struct {
	cid uint32         // our name of it
	at  netip.AddrPort // where its packets go; zero if the link learns of no unreachable ports
}

// peers says which connection of a host a peer means. A Reset names a connection as the peer does, and so does a
// packet of ours that an ICMP message quotes. Both may arrive at any engine.
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

// stranger handles a packet of a connection that is not known here: its ID names none, or its tag is
// not that of the connection which has the ID now. It crosses to the engine that it names, or it is
// answered with Reset in its own frame, within a limit.
func (e *Engine) handleUnknown(h *proto.Header, bufs []link.Buf) (kept bool) {
	if e.forward(h, bufs) {
		return false
	}
	e.stats.UnknownConnection++
	if s, _, _ := e.table.find(h.CID); s != nil && s.linger != nil {
		return false // Close is on its way
	}
	if !e.mayReply(bufs) {
		return false
	}
	e.stats.Resets++
	out := proto.Header{Type: proto.Reset, CID: h.CID, PSN: h.PSN, Ack: h.Ack, TS: e.now.Stamp(), Echo: h.TS, Tag: h.Tag}
	e.replyHeader(bufs, h, &out)
	return true
}

// mayReply reports whether a packet may be answered without a connection, in its own frame.
func (e *Engine) mayReply(bufs []link.Buf) bool {
	return !e.forwarded && len(bufs) == 1 && e.replyLimit.allow(e.source(&bufs[0]), e.now)
}

// handleReset doubts a connection: the peer may not know our connection any more. To cross to the engine
// of that connection the packet is given our name of it.
func (e *Engine) handleReset(h *proto.Header, bufs []link.Buf) {
	if !e.forwarded {
		name, ok := e.host.peers.find(peerKey{e.source(&bufs[0]), h.CID, h.Tag})
		if !ok {
			e.stats.UnknownConnection++
			return
		}
		h.CID = name.cid
		h.Put(bufs[0].Data)
		body := len(bufs[0].Data) - proto.TrailerSize
		proto.PutTrailer(bufs[0].Data[body:], proto.CRC(0, bufs[0].Data[:body]))
		if e.forward(h, bufs) {
			return
		}
	}
	c := e.lookup(h.CID)
	switch {
	case c == nil || !c.alive(), h.Tag != c.peerTag, e.source(&bufs[0]) != c.peerAddr:
		e.stats.UnknownConnection++
	case !c.hasSent(h.PSN):
		e.stats.Forged++
	case c.handleLostReport(h.Echo):
		c.breakDown(StatusTransport, proto.ReasonTimeout)
	}
}
