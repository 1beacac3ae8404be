package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/tap"
)

// adapter is an open IA with the zone that everything of ours is in.
type adapter struct {
	ia *dat.IA
	pz *dat.PZ
	// attr is what was granted.
	attr dat.IAParam
	// hide takes it out of the metrics.
	hide func()
	// impaired are the layers that damage what it receives; flush completes the capture of it.
	impaired []*tap.Impaired
	flush    func() error
}

func openAdapter(h *host, s station) (a *adapter, err error) {
	a = &adapter{hide: func() {}, flush: h.capture.flush}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
			a = nil
		}
	}()
	o, err := a.options(h, s)
	if err != nil {
		return a, err
	}
	if a.ia, err = dat.Open(s.IA, o); err != nil {
		return a, err
	}
	if a.attr, err = a.ia.Query(); err != nil {
		return a, err
	}
	if a.pz, err = a.ia.CreatePZ(); err != nil {
		return a, err
	}
	if h.metrics != nil {
		a.hide = h.metrics.Add(s.IA, a.ia)
	}
	return a, nil
}

// options has the layers that go over the links: a capture sees what the protocol sees.
func (a *adapter) options(h *host, s station) (dat.Options, error) {
	o := dat.DefaultOptions()
	o.Port = s.Port
	rates, err := tap.Parse(s.Impair)
	if err != nil {
		return o, err
	}
	if !rates.Zero() {
		o.Wrap = impairing(tap.Impair, rates, func(t *tap.Impaired) { a.impaired = append(a.impaired, t) })
	}
	if h.capture != nil {
		pcap, err := h.capture.begin()
		if err != nil {
			return o, err
		}
		o.Wrap = then(o.Wrap, over(pcap.Tap))
	}
	return o, nil
}

func (a *adapter) close() error {
	a.hide()
	var errs []error
	if a.pz != nil {
		errs = append(errs, a.pz.Free())
	}
	if a.ia != nil {
		errs = append(errs, within(openLimit, "closing the adapter", func() error { return a.ia.Close(dat.CloseGraceful) }))
	}
	return errors.Join(append(errs, a.flush())...)
}

// transport is what DAT crosses.
func (a *adapter) transport() string {
	if a.attr.Mode == transportUDP {
		return transportUDP
	}
	return transportXDP
}

// losses are the adapter's counters that a row reports. Packets that an impairment dropped count.
type losses struct{ retransmits, drops uint64 }

func (a *adapter) losses() losses {
	s, err := a.ia.Stats()
	if err != nil {
		return losses{} // it is closed
	}
	l := losses{s.Retransmits, s.Link.RxDropped + s.Link.TxDropped}
	for _, t := range a.impaired {
		l.drops += t.Counts().Dropped
	}
	return l
}

func (l losses) since(base losses) losses {
	return losses{l.retransmits - base.retransmits, l.drops - base.drops}
}

// conn is one connection with all that a row needs of it. One goroutine uses it, and drives the
// adapter by polling.
type conn struct {
	*adapter
	row    Row
	evd    *dat.EVD
	ep     *dat.EP
	mem    *memory
	remote dat.RMRTriplet

	ev dat.Event
	// posted and done count requests.
	posted, done int64
	// onReceive is called for each message that arrives, with its slot and length.
	onReceive func(slot, n int) error

	// up is set when the connection is established, gone when it has ended in order.
	up, gone bool

	ctx      context.Context
	deadline time.Time
	idle     uint
}

// receiveCookie marks receives; the rest of their cookie is the slot. Requests have cookie 0.
const receiveCookie = 1 << 63

// Errors of a connection.
var (
	errGone    = errors.New("the peer ended the connection")
	errTimeout = errors.New("the peer fell silent")
)

// newConn makes an endpoint with memory; it is not connected yet.
func newConn(ctx context.Context, a *adapter, row Row, sh shape) (c *conn, err error) {
	c = &conn{adapter: a, row: row, ctx: ctx}
	c.extend()
	defer func() {
		if err != nil {
			err = errors.Join(err, c.free())
			c = nil
		}
	}()
	if c.mem, err = newMemory(a, int(row.Size), sh); err != nil {
		return c, err
	}
	if c.evd, err = a.ia.CreateEVD(2*(sh.messages+sh.requests)+16, nil, dat.EVDDTO|dat.EVDConnection); err != nil {
		return c, err
	}
	attr := dat.DefaultEPAttr()
	attr.MaxRecvDTOs, attr.MaxRequestDTOs = sh.messages, sh.requests
	reads := min(sh.requests, a.attr.MaxRDMAReadPerEPOut)
	attr.MaxRDMAReadIn, attr.MaxRDMAReadOut = reads, reads
	c.ep, err = a.ia.CreateEP(a.pz, c.evd, c.evd, c.evd, &attr)
	return c, err
}

// extend gives the row its time from now on.
func (c *conn) extend() {
	limit := c.row.Warmup + c.row.Duration + patience
	if c.row.Metric == metricSHA256 {
		limit += sha256Limit
	}
	c.deadline = time.Now().Add(limit)
}

func (c *conn) free() error {
	var errs []error
	if c.ep != nil {
		errs = append(errs, c.ep.Free())
	}
	if c.evd != nil {
		errs = append(errs, c.evd.Free())
	}
	if c.mem != nil {
		errs = append(errs, c.mem.lmr.Free())
	}
	return errors.Join(errs...)
}

// poll handles one event, if there is one, and drives the adapter if there is none.
func (c *conn) poll() (some bool, err error) {
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
func (c *conn) patient() error {
	if c.idle++; c.idle%4096 != 0 {
		return nil
	}
	if time.Now().After(c.deadline) {
		return errTimeout
	}
	return c.ctx.Err()
}

func (c *conn) handle() error {
	if c.ev.Number != dat.EventDTOCompletion {
		return c.connectionEvent()
	}
	if c.ev.Status == dat.DTOFlushed {
		return nil // the connection has ended, and its own event says how
	}
	if c.ev.Status != dat.DTOSuccess {
		return fmt.Errorf("operation ended with %v", c.ev.Status)
	}
	if c.ev.Cookie&receiveCookie == 0 {
		c.done++
		return nil
	}
	return c.onReceive(int(c.ev.Cookie&^receiveCookie), int(c.ev.Length))
}

func (c *conn) connectionEvent() error {
	switch c.ev.Number {
	case dat.EventEstablished:
		c.up = true
		return nil
	case dat.EventDisconnected:
		c.gone = true
		return errGone
	default:
		return fmt.Errorf("connection: %v", c.ev.Number)
	}
}

// until polls until cond holds.
func (c *conn) until(cond func() bool) error {
	for !cond() {
		if _, err := c.poll(); err != nil {
			return err
		}
	}
	return nil
}

// full is whether a post found its queue full: poll, then post again.
func (c *conn) full(err error) (bool, error) {
	if err == nil {
		c.posted++
		return false, nil
	}
	if !errors.Is(err, dat.ErrInsufficientResources) {
		return false, err
	}
	_, err = c.poll()
	return true, err
}

// send posts a message, waiting for room in the queue.
func (c *conn) send(piece []dat.LMRTriplet) error {
	for {
		again, err := c.full(c.ep.PostSend(piece, 0, dat.CompletionDefault))
		if !again || err != nil {
			return err
		}
	}
}

// write posts an RDMA write, read an RDMA read.
func (c *conn) write(piece []dat.LMRTriplet, to dat.RMRTriplet) error {
	for {
		again, err := c.full(c.ep.PostRDMAWrite(piece, 0, to, dat.CompletionDefault))
		if !again || err != nil {
			return err
		}
	}
}

func (c *conn) read(piece []dat.LMRTriplet, from dat.RMRTriplet) error {
	for {
		again, err := c.full(c.ep.PostRDMARead(piece, 0, from, dat.CompletionDefault))
		if !again || err != nil {
			return err
		}
	}
}

// receive posts a slot for a message.
func (c *conn) receive(slot int) error {
	return c.ep.PostRecv(c.mem.slots[slot], receiveCookie|uint64(slot), dat.CompletionDefault)
}

func (c *conn) receiveAll() error {
	for i := range c.mem.shape.messages {
		if err := c.receive(c.mem.shape.rdma + i); err != nil {
			return err
		}
	}
	return nil
}
