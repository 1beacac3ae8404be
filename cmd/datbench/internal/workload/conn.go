package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
)

// Conn is the set of connections of a row. The connections share their memory and one EVD. One goroutine uses a Conn
// and drives the adapter by polling.
type Conn struct {
	*Adapter
	row plan.Spec
	evd *dat.EVD
	eps []*dat.EP
	// ep is the connection to which requests are posted; lane is its index in eps.
	ep     *dat.EP
	lane   int
	mem    *memory
	remote dat.RMRTriplet

	ev dat.Event
	requestCounts
	// onReceive handles each received message; it gets the message's slot and length. If onReceive is nil, a message is
	// a protocol error of the peer.
	onReceive func(slot, n int) error

	// numEstablished is the number of connections that were established. numEnded is the number of connections that
	// ended gracefully.
	numEstablished, numEnded int
	// churnHeap has the small objects of a row with --churn, which are replaced while the row runs. It is nil for other
	// rows.
	churnHeap *heap
	// meter reports intervals while the row runs; nil for none.
	meter *meter

	// realtime gives the thread real-time priority while it measures.
	realtime bool

	ctx      context.Context
	deadline time.Time
	idle     uint
	// watch detects a peer that has stopped during the row; nil before the row begins.
	watch *watch
}

// requestCounts counts the requests of a row. Every signalEvery-th request of a connection is signaled: it has a
// completion, which also reports the requests before it. unsignaled has, for each connection, the number of requests
// since its last signaled request.
type requestCounts struct {
	posted, done int64
	unsignaled   []int64
	signalEvery  int64
}

// receiveCookie is the bit that marks the cookie of a receive; the other bits are the slot. The cookie of a request is
// the number of requests that its completion reports.
const receiveCookie = 1 << 63

// Errors of a connection.
var (
	ErrGone              = errors.New("the peer ended the connection")
	ErrSlow              = errors.New("the peer did not finish the row in time")
	ErrUnexpectedMessage = errors.New("the peer sent an unexpected message")
)

// newConn makes endpoints with memory. They are not connected yet.
func newConn(ctx context.Context, a *Adapter, row plan.Spec, sh shape) (c *Conn, err error) {
	n := row.ConnectionCount()
	c = &Conn{Adapter: a, row: row, ctx: ctx, requestCounts: requestCounts{unsignaled: make([]int64, n), signalEvery: 1}}
	c.extend()
	defer func() {
		if err != nil {
			err = errors.Join(err, c.free())
			c = nil
		}
	}()
	if c.mem, err = newMemory(a, int(row.Size), n, sh); err != nil {
		return c, err
	}
	if c.evd, err = a.IA.CreateEVD(n*(2*(sh.messageSlots+sh.numRequests)+16), nil, dat.EVDDTO|dat.EVDConnection); err != nil {
		return c, err
	}
	for range n {
		if err := c.addEP(sh); err != nil {
			return c, err
		}
	}
	c.use(0)
	return c, nil
}

// raisePriority gives the calling thread real-time priority until release is called, if the row requests it.
func (c *Conn) raisePriority() (release func(), err error) {
	if !c.realtime {
		return func() {}, nil
	}
	return measure.GoRealtime()
}

// addEP creates one more endpoint.
func (c *Conn) addEP(sh shape) error {
	attr := dat.DefaultEPAttr()
	attr.MaxRecvDTOs, attr.MaxRequestDTOs = sh.messageSlots, sh.numRequests
	reads := min(sh.numRequests, c.Attr.MaxRDMAReadPerEPOut)
	attr.MaxRDMAReadIn, attr.MaxRDMAReadOut = reads, reads
	ep, err := c.IA.CreateEP(c.pz, dat.EPConfig{RecvEVD: c.evd, RequestEVD: c.evd, ConnectEVD: c.evd, Attr: &attr})
	if err == nil {
		c.eps = append(c.eps, ep)
	}
	return err
}

// use selects the connection to post to.
func (c *Conn) use(i int) { c.ep, c.lane = c.eps[i], i }

// extend restarts the row's deadline. Hosts that are busy may need time for the operations that are outstanding at the
// end. A peer that does nothing is detected earlier, by the watch.
func (c *Conn) extend() {
	c.deadline = time.Now().Add(c.row.MaxTime() + 2*plan.PeerTimeout)
}

func (c *Conn) free() error {
	var errs []error
	for _, ep := range c.eps {
		errs = append(errs, ep.Free())
	}
	if c.evd != nil {
		errs = append(errs, c.evd.Free())
	}
	if c.mem != nil {
		errs = append(errs, c.mem.free())
	}
	c.churnHeap.free()
	return errors.Join(errs...)
}

// poll handles one event. If there is none, it drives the adapter and checks the deadline.
func (c *Conn) poll() (some bool, err error) {
	switch err := c.evd.Dequeue(&c.ev); {
	case err == nil:
		return true, c.handle()
	case err == dat.ErrQueueEmpty || errors.Is(err, dat.ErrQueueEmpty):
		return false, c.checkDeadline()
	default:
		return false, err
	}
}

// checkDeadline ends a wait that has lasted too long. It reads the clock in every 4096th call only.
func (c *Conn) checkDeadline() error {
	if c.idle++; c.idle%4096 != 0 {
		return nil
	}
	now := time.Now()
	if now.After(c.deadline) {
		return ErrSlow
	}
	if c.watch != nil {
		if err := c.watch.check(c, now); err != nil {
			return err
		}
	}
	return c.ctx.Err()
}

func (c *Conn) handle() error {
	if c.ev.Number != dat.EventDTOCompletion {
		return c.connectionEvent()
	}
	if c.ev.Status == dat.DTOFlushed || c.ev.Status == dat.DTOTransport {
		return nil // a later event reports how the connection ended
	}
	if c.ev.Status == dat.DTORemoteAccess && c.row.Secure {
		return fmt.Errorf("operation ended with %v: memory= of the line of this host in the server's file of peers may not permit it", c.ev.Status)
	}
	if c.ev.Status != dat.DTOSuccess {
		return fmt.Errorf("operation ended with %v", c.ev.Status)
	}
	if c.ev.Cookie&receiveCookie == 0 {
		c.done += int64(c.ev.Cookie)
		return nil
	}
	if c.onReceive == nil {
		return ErrUnexpectedMessage
	}
	return c.onReceive(int(c.ev.Cookie&^receiveCookie), int(c.ev.Length))
}

func (c *Conn) connectionEvent() error {
	switch c.ev.Number {
	case dat.EventEstablished:
		c.numEstablished++
		return nil
	case dat.EventDisconnected:
		c.numEnded++
		return ErrGone
	case dat.EventBroken:
		return fmt.Errorf("the connection broke: %v", c.ev.BreakReason)
	default:
		return fmt.Errorf("connection: %v", c.ev.Number)
	}
}

// pollUntil polls the adapter until cond returns true.
func (c *Conn) pollUntil(cond func() bool) error {
	for !cond() {
		if _, err := c.poll(); err != nil {
			return err
		}
	}
	return nil
}

// postAgain handles err, the result of a post. It counts a successful post. If the post failed because the queue had no
// room, postAgain polls the adapter and returns true, and the caller posts again.
func (c *Conn) postAgain(err error) (bool, error) {
	if err == nil {
		c.posted++
		if c.unsignaled[c.lane]++; c.unsignaled[c.lane] >= c.signalEvery {
			c.unsignaled[c.lane] = 0
		}
		return false, nil
	}
	if !errors.Is(err, dat.ErrInsufficientResources) {
		return false, err
	}
	_, err = c.poll()
	return true, err
}

// nextCookie returns the cookie and the flags of the next request.
func (c *Conn) nextCookie() (cookie uint64, flags dat.CompletionFlags) {
	n := c.unsignaled[c.lane] + 1
	if n < c.signalEvery {
		return 0, dat.CompletionSuppress
	}
	return uint64(n), dat.CompletionDefault
}

// send posts a message. It polls while the queue is full.
func (c *Conn) send(piece []dat.LMRTriplet) error {
	for {
		cookie, flags := c.nextCookie()
		again, err := c.postAgain(c.ep.PostSend(piece, cookie, flags))
		if !again || err != nil {
			return err
		}
	}
}

// write posts an RDMA write, and read posts an RDMA read.
func (c *Conn) write(piece []dat.LMRTriplet, to dat.RMRTriplet) error {
	for {
		cookie, flags := c.nextCookie()
		again, err := c.postAgain(c.ep.PostRDMAWrite(piece, cookie, to, flags))
		if !again || err != nil {
			return err
		}
	}
}

func (c *Conn) read(piece []dat.LMRTriplet, from dat.RMRTriplet) error {
	for {
		cookie, flags := c.nextCookie()
		again, err := c.postAgain(c.ep.PostRDMARead(piece, cookie, from, flags))
		if !again || err != nil {
			return err
		}
	}
}

// receive posts a slot for a message on the connection that the slot belongs to.
func (c *Conn) receive(slot int) error {
	ep := c.ep
	if len(c.eps) > 1 {
		ep = c.eps[(slot-c.mem.rdma())/c.mem.shape.messageSlots]
	}
	return ep.PostRecv(c.mem.slots[slot], receiveCookie|uint64(slot), dat.CompletionDefault)
}

func (c *Conn) receiveAll() error {
	for i := c.mem.rdma(); i < len(c.mem.slots); i++ {
		if err := c.receive(i); err != nil {
			return err
		}
	}
	return nil
}
