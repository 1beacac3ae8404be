package wire

import (
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// In secure mode, the packets of a connection are sealed: Data, Ack, Probe, Probed, Close and Closed. A tag of 16 bytes
// replaces the CRC, and the lower half of the packet's counter replaces the verification tag (decision 0016). An adapter
// is in secure mode or in plaintext mode, never in both.
//
// packet.finish seals. So a packet that is sent again is built and sealed again, with a counter of its own.
// Engine.receiveSealed opens.

// keys are the keys of one connection, from the peer's Hello until the connection, or its linger, ends. The methods that
// say so accept a nil pointer, which stands for plaintext mode.
type keys struct {
	*seal.Session
	own, peer [32]byte // public keys of the two ends; 0 with a shared secret
	conn      *Conn    // connection that breaks if the keys are used up; nil for a linger
	usedUp    bool     // no further packet can be sealed or opened
	phase     uint32   // key phase of the last opened packets
	expireAt  Time     // when the receiving key of the phase before is dropped; never: there is none
	challenge uint64   // counter of the first challenge ACK of the last challenge
}

// sealing is the state of secure mode on an engine.
type sealing struct {
	secure bool // secure mode
	// tx and rx are buffers for packets of several frames, because a packet has to be contiguous to be sealed or opened.
	// They are nil in plaintext mode, and if the link has no such packets.
	tx, rx    []byte
	building  []byte       // the part of tx in which a packet is being built
	buildPath link.Path    // path of that packet
	opened    [1]link.Buf  // the packet in rx that is being handled
	frames    []link.Buf   // the frames in which that packet arrived; nil while no packet in rx is handled
	results   *results     // of jobs; nil in plaintext mode
	connects  usedConnects // Connects whose message 1 was opened
}

func newSealing(maxPacket int, caps *link.Caps) sealing {
	s := sealing{secure: true, results: new(results)}
	if caps.Segments > 1 {
		s.tx, s.rx = make([]byte, maxPacket), make([]byte, caps.MaxPayload)
	}
	return s
}

// makeKeys makes the keys of a connection from the secrets of its handshake, and overwrites the secrets. mtu is the
// largest packet that the peer can receive.
func (c *Conn) makeKeys(s *secrets, mtu uint32) {
	cfg := seal.Config{Send: &s.send, Receive: &s.receive, Leads: c.req == nil, Limits: c.host.keyLimits, Cipher: c.host.newCipher}
	if cfg.Limits == (seal.Limits{}) {
		cfg.Limits = seal.LimitsFor(max(c.eng.maxPacket, int(min(mtu, 1<<16))))
	}
	c.keys = &keys{conn: c, expireAt: never}
	if c.req != nil {
		c.keys.own, c.keys.peer = c.req.OwnKey, c.req.PeerKey
	} else {
		c.keys.own, c.keys.peer = c.dial.opening.requester.Keys()
	}
	var err error
	if c.keys.Session, err = seal.New(&cfg, c.eng.now); err != nil {
		c.keys.Session = new(seal.Session) // it refuses every packet
	}
}

// takeKeys takes the keys from the connection, for its linger or to wipe them.
func (c *Conn) takeKeys() *keys {
	k := c.keys
	if c.keys = nil; k != nil {
		k.conn = nil
	}
	return k
}

// wipe overwrites the secrets. k may be nil.
func (k *keys) wipe() {
	if k != nil {
		k.Wipe()
	}
}

// trailer returns the size of the trailer in bytes. k may be nil.
func (k *keys) trailer() int {
	n := proto.TrailerSize
	if k != nil {
		n = seal.Overhead
	}
	return n
}

// exhaust notes that no further packet can be sealed or opened. The timer of the connection then ends it.
func (k *keys) exhaust() {
	k.usedUp = true
	if c := k.conn; c != nil {
		c.setDeadline(c.eng.now)
	}
}

// dueKeys drops the receiving key of the phase before, or ends the connection if its keys are used up. The peer gets no
// Close, because Close has to be sealed.
func (c *Conn) dueKeys() Time {
	k := c.keys
	switch {
	case k == nil:
		return never
	case k.usedUp:
		c.failOldest(StatusTransport)
		c.breakReason = BreakKeyLimit
		c.end(KindBroken, StatusFlushed)
		return never
	case k.expireAt <= c.eng.now:
		k.Expire(c.eng.now, 0)
		k.expireAt = never
	}
	return k.expireAt
}

// noteOpened notes that a packet was opened. If the packet began a key phase, packets of the phase before may still come
// for 3 RTO.
func (k *keys) noteOpened() {
	_, phase := k.Phases()
	if phase == k.phase {
		return
	}
	k.phase = phase
	if c := k.conn; c != nil {
		k.expireAt = c.eng.now.Add(3 * c.rto())
		c.setDeadline(k.expireAt)
	}
}

// seal writes the header, seals the packet and moves it to frames if it was built elsewhere. A packet that cannot be
// sealed is lost.
func (p *packet) seal(h *proto.Header) {
	e := p.e
	var b []byte
	if p.apart {
		b = e.building[:len(e.building)-len(p.cur)]
	} else {
		f := e.tx[p.firstFrame].Data
		b = f[:len(f)-len(p.cur)]
	}
	h.Put(b)
	b, ok := p.keys.Seal(b, e.now)
	if !ok {
		p.abandon()
		p.keys.exhaust()
		return
	}
	if p.apart {
		p.spread(b)
	} else {
		e.tx[p.firstFrame].Data = b
	}
	p.done()
}

// spread copies a sealed packet into frames.
func (p *packet) spread(b []byte) {
	e := p.e
	for {
		n := copy(e.queueFrame(e.buildPath), b)
		f := &e.tx[len(e.tx)-1]
		f.Data = f.Data[:n]
		if b = b[n:]; len(b) == 0 {
			return
		}
		f.Flags |= link.More
	}
}

// gather copies a packet of several frames into rx, and returns the packet as one Buf. It returns nil if the packet is
// larger than the link can receive.
func (s *sealing) gather(bufs []link.Buf) []link.Buf {
	if len(bufs) == 1 {
		return bufs
	}
	n := sizeOf(bufs)
	if n > len(s.rx) {
		return nil
	}
	at := s.rx[:0]
	for i := range bufs {
		at = append(at, bufs[i].Data...)
	}
	s.opened[0] = link.Buf{Data: at, Flags: bufs[0].Flags &^ link.More}
	s.frames = bufs
	return s.opened[:]
}

// scatter returns the frames in which a packet arrived. If the packet was opened in rx, scatter copies it from there into
// the frames.
func (s *sealing) scatter(bufs []link.Buf) []link.Buf {
	if s.frames == nil {
		return bufs
	}
	b := s.opened[0].Data
	for i := range s.frames {
		b = b[copy(s.frames[i].Data, b):]
	}
	return s.frames
}

// peerKey returns the key of a connection in the table of peers. at is the destination of our packets, as far as the link
// knows it. In secure mode no tag tells two processes at one address apart that have chosen the same ID, but their ports do.
func (e *Engine) peerKey(addr netip.Addr, at netip.AddrPort, cid, tag uint32) peerKey {
	if e.secure {
		return peerKey{addr: addr, port: at.Port(), cid: cid}
	}
	return peerKey{addr: addr, cid: cid, tag: tag}
}

// peerKey returns the key of the connection in the table of peers.
func (c *Conn) peerKey() peerKey {
	return c.eng.peerKey(c.peerAddr, c.eng.portReports.destination(c.path), c.peerCID, c.peerTag)
}

// senderKey returns the key of the connection whose peer has sent a Reset.
func (e *Engine) senderKey(h *proto.Header, b *link.Buf) peerKey {
	from := e.link.Source(b)
	if e.portReports.link == nil {
		from = netip.AddrPort{} // as destination
	}
	return e.peerKey(e.source(b), from, h.CID, h.Tag)
}
