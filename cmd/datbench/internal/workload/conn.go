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

// Conn is the connections of a row with all that it needs of them: they share memory and one event
// dispatcher. One goroutine uses it, and drives the adapter by polling.
type Conn struct {
	*Adapter
	row plan.Spec
	evd *dat.EVD
	eps []*dat.EP
	// ep, the one of them in lane, is posted to.
	ep     *dat.EP
	lane   int
	mem    *memory
	remote dat.RMRTriplet

	ev dat.Event
	// posted and done count requests, quiet those of each connection since the last whose completion tells of them all:
	// one of every does.
	posted, done int64
	quiet        []int64
	every        int64
	// onReceive is called for each message that arrives, with its slot and length. While it is nil, a message is a fault of the peer.
	onReceive func(slot, n int) error

	// up counts the connections that are established, gone those that have ended in order.
	up, gone int
	// heap is churned while the row runs; nil for none.
	heap *heap
	// meter tells of the row while it runs; nil if nobody asked.
	meter *meter

	// realtime is whether the thread goes before others while it measures.
	realtime bool

	ctx      context.Context
	deadline time.Time
	idle     uint
	// watch ends the row of an initiator that stops half way; nil at an initiator.
	watch *watch
}

// receiveCookie marks receives; the rest of their cookie is the slot. The cookie of a request is
// how many it tells of.
const receiveCookie = 1 << 63

// Errors of a connection.
var (
	errGone    = errors.New("the peer ended the connection")
	ErrSilent  = errors.New("the peer fell silent")
	ErrUnasked = errors.New("the peer sent a message where the row has none")
)

// newConn makes an endpoint with memory; it is not connected yet.
func newConn(ctx context.Context, a *Adapter, row plan.Spec, sh shape) (c *Conn, err error) {
	c = &Conn{Adapter: a, row: row, ctx: ctx, quiet: make([]int64, row.ConnectionCount()), every: 1}
	c.extend()
	defer func() {
		if err != nil {
			err = errors.Join(err, c.free())
			c = nil
		}
	}()
	n := row.ConnectionCount()
	if c.mem, err = newMemory(a, int(row.Size), n, sh); err != nil {
		return c, err
	}
	if c.evd, err = a.IA.CreateEVD(n*(2*(sh.messages+sh.requests)+16), nil, dat.EVDDTO|dat.EVDConnection); err != nil {
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

// hurry puts the calling thread before others, if that was asked for, until it is released.
func (c *Conn) hurry() (release func(), err error) {
	if !c.realtime {
		return func() {}, nil
	}
	return measure.GoRealtime()
}

// addEP makes one more endpoint.
func (c *Conn) addEP(sh shape) error {
	attr := dat.DefaultEPAttr()
	attr.MaxRecvDTOs, attr.MaxRequestDTOs = sh.messages, sh.requests
	reads := min(sh.requests, c.Attr.MaxRDMAReadPerEPOut)
	attr.MaxRDMAReadIn, attr.MaxRDMAReadOut = reads, reads
	ep, err := c.IA.CreateEP(c.pz, dat.EPConfig{RecvEVD: c.evd, RequestEVD: c.evd, ConnectEVD: c.evd, Attr: &attr})
	if err == nil {
		c.eps = append(c.eps, ep)
	}
	return err
}

// use makes one of the connections that which is posted to.
func (c *Conn) use(i int) { c.ep, c.lane = c.eps[i], i }

// extend gives the row its time from now on.
func (c *Conn) extend() {
	c.deadline = time.Now().Add(c.row.MaxTime() + plan.Patience)
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
	c.heap.free()
	return errors.Join(errs...)
}

// poll handles one event, if there is one, and drives the adapter if there is none.
func (c *Conn) poll() (some bool, err error) {
	switch err := c.evd.Dequeue(&c.ev); {
	case err == nil:
		return true, c.handle()
	case err == dat.ErrQueueEmpty || errors.Is(err, dat.ErrQueueEmpty):
		return false, c.patient()
	default:
		return false, err
	}
}

// patient ends a wait that has become hopeless. It reads the clock now and then.
func (c *Conn) patient() error {
	if c.idle++; c.idle%4096 != 0 {
		return nil
	}
	now := time.Now()
	if now.After(c.deadline) {
		return ErrSilent
	}
	if c.watch != nil {
		if err := c.watch.look(c, now); err != nil {
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
		return nil // the connection has ended, and its own event says how
	}
	if c.ev.Status != dat.DTOSuccess {
		return fmt.Errorf("operation ended with %v", c.ev.Status)
	}
	if c.ev.Cookie&receiveCookie == 0 {
		c.done += int64(c.ev.Cookie)
		return nil
	}
	if c.onReceive == nil {
		return ErrUnasked
	}
	return c.onReceive(int(c.ev.Cookie&^receiveCookie), int(c.ev.Length))
}

func (c *Conn) connectionEvent() error {
	switch c.ev.Number {
	case dat.EventEstablished:
		c.up++
		return nil
	case dat.EventDisconnected:
		c.gone++
		return errGone
	case dat.EventBroken:
		return fmt.Errorf("the connection broke: %v", c.ev.BreakReason)
	default:
		return fmt.Errorf("connection: %v", c.ev.Number)
	}
}

// until polls until cond holds.
func (c *Conn) until(cond func() bool) error {
	for !cond() {
		if _, err := c.poll(); err != nil {
			return err
		}
	}
	return nil
}

// full is whether a post found its queue full: poll, then post again.
func (c *Conn) full(err error) (bool, error) {
	if err == nil {
		c.posted++
		if c.quiet[c.lane]++; c.quiet[c.lane] >= c.every {
			c.quiet[c.lane] = 0
		}
		return false, nil
	}
	if !errors.Is(err, dat.ErrInsufficientResources) {
		return false, err
	}
	_, err = c.poll()
	return true, err
}

// told is the cookie and the flags of the next request.
func (c *Conn) told() (cookie uint64, flags dat.CompletionFlags) {
	n := c.quiet[c.lane] + 1
	if n < c.every {
		return 0, dat.CompletionSuppress
	}
	return uint64(n), dat.CompletionDefault
}

// send posts a message, waiting for room in the queue.
func (c *Conn) send(piece []dat.LMRTriplet) error {
	for {
		cookie, flags := c.told()
		again, err := c.full(c.ep.PostSend(piece, cookie, flags))
		if !again || err != nil {
			return err
		}
	}
}

// write posts an RDMA write, read an RDMA read.
func (c *Conn) write(piece []dat.LMRTriplet, to dat.RMRTriplet) error {
	for {
		cookie, flags := c.told()
		again, err := c.full(c.ep.PostRDMAWrite(piece, cookie, to, flags))
		if !again || err != nil {
			return err
		}
	}
}

func (c *Conn) read(piece []dat.LMRTriplet, from dat.RMRTriplet) error {
	for {
		cookie, flags := c.told()
		again, err := c.full(c.ep.PostRDMARead(piece, cookie, from, flags))
		if !again || err != nil {
			return err
		}
	}
}

// receive posts a slot for a message, on the connection that it belongs to.
func (c *Conn) receive(slot int) error {
	ep := c.ep
	if len(c.eps) > 1 {
		ep = c.eps[(slot-c.mem.rdma())/c.mem.shape.messages]
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
