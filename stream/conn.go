package stream

import (
	"math/bits"
	"net"
	"sync"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// phase is the state of a connection.
type phase uint8

const (
	connecting phase = iota
	open
	ended // by the peer or by an error, Conn.cause says why
)

// Conn is one end of a stream. It implements net.Conn; any goroutine may call its methods.
type Conn struct {
	stack *stack
	objects
	local, remote *net.TCPAddr
	active        bool      // this end has dialed
	listener      *Listener // of a pending stream, and of one that waits for Accept

	reading, writing sync.Mutex // held by Read and by Write: one call of each at a time

	mu     sync.Mutex // guards the fields below
	phase  phase
	cause  error // why the stream has ended: io.EOF if the peer has closed it
	opened bool  // the connection was established
	life   life
	linger time.Duration // how long Close waits for acknowledgements; negative for the default
	usage
	race    raceEdges
	in      inbox
	out     outbox
	segment [1]dat.LMRTriplet
	blockers
}

// objects are the objects of package dat that belong to one stream, beside its rings.
type objects struct {
	pz      *dat.PZ // of this stream only, so that no other peer reaches its rings
	ep      *dat.EP
	cno     *dat.CNO // of this stream only; its agent handles the events that no call waits for
	evd     *dat.EVD
	slots   []byte // memory of control messages: receives, then sends
	slotMem *dat.LMR
}

const (
	recvSlots = maxMessages + maxControls
	evdLength = recvSlots + maxMessages + maxControls + 2 // and the end of the connection, one software event
)

var epAttr = dat.EPAttr{MaxRecvDTOs: recvSlots, MaxRequestDTOs: maxMessages + maxControls, MaxRecvIOV: 1, MaxRequestIOV: 1}

// newConn makes an unconnected stream, which belongs to the caller.
func (s *stack) newConn(remote *net.TCPAddr) (c *Conn, err error) {
	c = &Conn{stack: s, remote: remote, linger: -1}
	c.slots = make([]byte, (recvSlots+maxControls)*controlSize)
	c.out.slots = allSlots
	c.agent = c.proceed
	c.read.wake, c.write.wake, c.closing.wake = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	c.enroll()
	defer func() {
		if err != nil {
			c.free()
		}
	}()
	if c.pz, err = s.ia.CreatePZ(); err != nil {
		return c, err
	}
	if c.in.first, err = c.newRing(minRing, dat.MemLocalWrite|dat.MemRemoteWrite); err != nil {
		return c, err
	}
	c.race.open(c.in.first.remote())
	if c.slotMem, err = s.ia.CreateLMR(c.slots, c.pz, dat.MemLocalRead|dat.MemLocalWrite); err != nil {
		return c, err
	}
	if c.cno, err = s.ia.CreateCNO(nil); err != nil {
		return c, err
	}
	if c.evd, err = s.ia.CreateEVD(evdLength, c.cno, dat.EVDDTO|dat.EVDConnection|dat.EVDSoftware); err != nil {
		return c, err
	}
	if err = c.evd.Disable(); err != nil {
		return c, err
	}
	if c.ep, err = s.ia.CreateEP(c.pz, dat.EPConfig{RecvEVD: c.evd, RequestEVD: c.evd, ConnectEVD: c.evd, Attr: &epAttr}); err != nil {
		return c, err
	}
	return c, c.receiveAll()
}

// receiveAll posts all receive slots.
func (c *Conn) receiveAll() error {
	for i := range recvSlots {
		if err := c.receive(uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

// receive posts a receive slot.
func (c *Conn) receive(slot uint64) error {
	c.segment[0] = c.slotMem.Segment(int(slot)*controlSize, controlSize)
	return c.ep.PostRecv(c.segment[:], slot, dat.CompletionDefault)
}

// post posts a control message. It returns false if all slots are in use; a completion then calls flush again.
func (c *Conn) post(m control) bool {
	if c.out.slots == 0 {
		return false
	}
	slot := bits.TrailingZeros(c.out.slots)
	offset := (recvSlots + slot) * controlSize
	b := m.append(c.slots[offset:offset])
	c.segment[0] = c.slotMem.Segment(offset, len(b))
	if c.fail(c.ep.PostSend(c.segment[:], isControl|uint64(slot), dat.CompletionDefault)) {
		return false
	}
	c.out.slots &^= 1 << slot
	return true
}

// fail ends the stream because of an error. It returns false, and does nothing, without one.
func (c *Conn) fail(err error) bool {
	if err == nil {
		return false
	}
	if c.phase != ended {
		c.phase, c.cause = ended, c.stack.ended(err)
	}
	return true
}

// end is fail for an error of the peer: it ends the connection too, so that the peer sends no further messages.
func (c *Conn) end(err error) {
	if c.phase != ended && c.fail(err) {
		_ = c.ep.Disconnect(dat.CloseAbrupt)
	}
}

// drain handles the queued events and does not wait for further events. It handles at most evdLength of them, because a
// peer that floods the stream can queue events as fast as drain takes them. It does nothing if the connection has a
// leader (see blocker): the leader dequeues an event without holding mu, so drain could handle a later event before the
// leader handles that one.
func (c *Conn) drain() {
	for n := 0; n < evdLength && c.leader == nil && c.evd.Len() > 0 && c.evd.Dequeue(&c.event) == nil; n++ {
		c.handle(&c.event)
	}
}

// handle handles an event of the connection.
func (c *Conn) handle(ev *dat.Event) {
	switch ev.Number {
	case dat.EventDTOCompletion, dat.EventIBDTO:
		if ev.Status == dat.DTOSuccess { // else an event about the connection follows
			c.end(c.transferred(ev))
		}
	case dat.EventEstablished:
		c.end(c.established(ev.PrivateData))
	case dat.EventSoftware:
		c.nudged = false
	default:
		c.fail(c.endOf(ev))
	}
}

// transferred handles the completion of a receive or request.
func (c *Conn) transferred(ev *dat.Event) (err error) {
	switch ev.Op {
	case dat.DTOReceiveImm:
		if ev.Length == 0 && ev.Imm == 0 { // without data, a credit is sent only if creditDue
			return errProtocol
		}
		if err = c.out.credit(parseCredit(ev.Imm)); err != nil {
			return err
		}
		if err = c.in.data(ev.Length); err != nil {
			return err
		}
		c.used = true
		if !c.closed() {
			c.enlarge()
		}
		if c.in.closed {
			c.discard()
		}
	case dat.DTOReceive:
		m, err := parseControl(c.slots[ev.Cookie*controlSize:][:ev.Length])
		if err != nil {
			return err
		}
		if err := c.control(m); err != nil {
			return err
		}
	case dat.DTOReceiveWithInvalidate:
		return errProtocol
	default:
		c.completed(ev.Cookie)
		return nil
	}
	return c.receive(ev.Cookie)
}

// control handles a control message.
func (c *Conn) control(m control) error {
	switch m.kind {
	case controlRing:
		if err := c.out.announced(m.ring); err != nil {
			return err
		}
		c.stack.keepTidy(c)
	case controlSwitch:
		if c.out.announce { // the peer cannot know the ring yet
			return errProtocol
		}
		if err := c.in.switched(); err != nil {
			return err
		}
		c.retireIn()
	case controlEnd:
		if c.in.ended {
			return errProtocol
		}
		c.in.ended = true
	}
	return nil
}

// established starts the stream. The accept of the peer has its hello; that of a request was parsed before.
func (c *Conn) established(private []byte) (err error) {
	if c.phase == ended { // by an earlier message of the peer
		return nil
	}
	if c.active {
		if c.out.peer.remoteRing, err = parseHello(private); err != nil {
			return err
		}
	}
	c.race.meet(c.out.peer.remoteRing)
	c.phase, c.opened = open, true
	return nil
}

// LocalAddr implements net.Conn. It returns a *net.TCPAddr, because libraries expect one.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn. It returns a *net.TCPAddr; the port of a client is made up.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Peer returns the public key and the name of the peer in secure mode, as in dat.EPParam. It returns zero values in
// plaintext mode, and after Close.
func (c *Conn) Peer() (key dat.PublicKey, name string) {
	p, err := c.ep.Query()
	if err != nil { // the endpoint is freed
		return dat.PublicKey{}, ""
	}
	return p.PeerKey, p.PeerName
}

// Identity is Peer for packages that do not import dat.
func (c *Conn) Identity() (key [32]byte, name string) {
	k, name := c.Peer()
	return k, name
}

var _ net.Conn = (*Conn)(nil)
