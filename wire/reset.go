package wire

import (
	"net/netip"
	"sync"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// A host that has restarted does not know the connections of its former life. It answers their packets
// with Reset, which repeats what the packet said, its verification tag among it, and needs no state.
// The other side believes a Reset only when a probe that it sends then is answered by one as well: an
// answer of the peer itself ends the doubt.

// peerKey is how a connection is found by what its peer calls it.
type peerKey struct {
	addr netip.Addr
	cid  uint32
}

// peers says which connection of a host a peer means. A Reset names a connection as the peer does,
// and may arrive on any engine's queue.
type peers struct {
	mu   sync.Mutex
	cids map[peerKey]uint32 // our names
}

func (p *peers) add(k peerKey, cid uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cids == nil {
		p.cids = make(map[peerKey]uint32)
	}
	p.cids[k] = cid
}

func (p *peers) remove(k peerKey, cid uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cids[k] == cid {
		delete(p.cids, k)
	}
}

func (p *peers) find(k peerKey) (cid uint32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cid, ok = p.cids[k]
	return cid, ok
}

// stranger handles a packet of a connection that is not known here: its ID names none, or its tag is
// not that of the connection which has the ID now. It crosses to the engine that it names, or it is
// answered with Reset in its own frame, within a limit.
func (e *Engine) stranger(h *proto.Header, bufs []link.Buf) (kept bool) {
	if e.cross(h, bufs) {
		return false
	}
	e.stats.UnknownConnection++
	if s, _, _ := e.table.find(h.CID); s != nil && s.linger != nil {
		return false // Close is on its way
	}
	if e.crossing || len(bufs) != 1 || !e.mayReset() {
		return false
	}
	e.stats.Resets++
	out := proto.Header{Type: proto.Reset, CID: h.CID, PSN: h.PSN, Ack: h.Ack, TS: e.now.stamp(), Echo: h.TS, Tag: h.Tag}
	e.bare(bufs, h, &out)
	return true
}

// mayReset takes a token of the Reset limit.
func (e *Engine) mayReset() bool {
	if e.now >= e.resetsAt {
		e.resetsAt, e.resetsLeft = e.now.Add(resetPeriod), resetBurst
	}
	if e.resetsLeft == 0 {
		return false
	}
	e.resetsLeft--
	return true
}

// resetByPeer handles Reset: the peer may not know our connection any more. To cross to the engine
// of that connection the packet is given our name of it.
func (e *Engine) resetByPeer(h *proto.Header, bufs []link.Buf) {
	if !e.crossing {
		cid, ok := e.host.peers.find(peerKey{e.source(&bufs[0]), h.CID})
		if !ok {
			e.stats.UnknownConnection++
			return
		}
		h.CID = cid
		h.Put(bufs[0].Data)
		body := len(bufs[0].Data) - proto.TrailerSize
		proto.PutTrailer(bufs[0].Data[body:], proto.CRC(0, bufs[0].Data[:body]))
		if e.cross(h, bufs) {
			return
		}
	}
	c := e.lookup(h.CID)
	switch {
	case c == nil || !c.alive():
		e.stats.UnknownConnection++
	case h.Tag != c.peerTag || e.source(&bufs[0]) != c.there:
		e.stats.Forged++
	case c.doubt != 0 && h.Echo == c.doubt:
		c.breakDown(StatusTransport, proto.ReasonTimeout)
	case c.probing(): // one doubt at a time
	case h.PSN.Within(c.send.una-proto.MaxWindow, c.send.nxt):
		c.doubt = e.now.stamp()
		c.sendAck(proto.AckRequest)
	default:
		e.stats.Forged++
	}
}

// probing reports whether the probe after a Reset left so recently that its answer may be on the way.
func (c *Conn) probing() bool {
	since := time.Duration(c.eng.now.stamp()-c.doubt) << stampShift
	return c.doubt != 0 && since < c.answerTime()
}
