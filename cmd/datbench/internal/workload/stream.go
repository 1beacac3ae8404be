package workload

import (
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// clockEvery is small operations per reading of the clock, which costs as much as one of them.
const clockEvery = 32

// pump keeps the row's window of operations outstanding through the phases, on its connections in turn;
// post makes one.
func (c *Conn) pump(post func(i int64, phase byte) error, turn func(phase byte, now time.Time) error) error {
	defer c.use(0)
	plan, window := measure.NewSchedule(c.row), int64(c.row.Window())
	c.every = int64(c.row.SignalEvery())
	step := int64(clockEvery)
	if c.row.Size >= 4096 {
		step = 1
	}
	phase, lane := measure.StageWarmUp, 0
	for i := int64(0); ; i++ {
		if i%step == 0 || i == plan.Until {
			now := time.Now()
			if next := plan.StageOf(i, now); next != phase {
				if err := turn(next, now); err != nil {
					return err
				}
				phase = next
			}
			if phase == measure.StageEnd {
				return c.tellAll(post)
			}
			c.meter.look(c, now)
		}
		for c.posted-c.done >= window {
			if _, err := c.poll(); err != nil {
				return err
			}
		}
		if err := post(i, phase); err != nil {
			return err
		}
		if len(c.eps) > 1 {
			if lane++; lane == len(c.eps) {
				lane = 0
			}
			c.use(lane)
		}
	}
}

// tellAll has the last request of every connection tell of those before it.
func (c *Conn) tellAll(post func(i int64, phase byte) error) error {
	c.every = 1
	for lane, n := range c.quiet {
		if n == 0 {
			continue
		}
		c.use(lane)
		if err := post(0, measure.StageWarmUp); err != nil {
			return err
		}
	}
	return nil
}

// streamSend sends messages; the target counts those of the measured phase.
func streamSend(c *Conn, r *result.Result) (measure.Evidence, error) {
	err := c.pump(c.poster(), func(phase byte, now time.Time) error {
		c.meter.turn(c, phase, now)
		return nil
	})
	if err != nil {
		return measure.Evidence{}, err
	}
	t, err := c.finish()
	r.Count(t.Count, t.Elapsed)
	return measure.Evidence{Elapsed: t.Elapsed, Tally: &t}, err
}

// poster posts the row's operation, each from or to a slot of its own.
func (c *Conn) poster() func(i int64, phase byte) error {
	switch c.row.Op {
	case result.Send:
		for phase := measure.StageWarmUp; phase <= measure.StageEnd; phase++ {
			c.mem.source(int(phase))[0] = phase
		}
		return func(_ int64, phase byte) error { return c.send(c.mem.sources[phase]) }
	case result.Write:
		window, slots := int64(c.row.Window()), c.remoteSlots()
		return func(i int64, _ byte) error { return c.write(c.mem.sources[0], slots[i%window]) }
	default:
		window, slots := int64(c.row.Window()), c.remoteSlots()
		pieces := c.answers()
		return func(i int64, _ byte) error { return c.read(pieces[i%window], slots[i%window]) }
	}
}

// answers is where reads put what they read: the last slots for RDMA, which the peer leaves alone if it
// reads too.
func (c *Conn) answers() [][]dat.LMRTriplet {
	pieces := make([][]dat.LMRTriplet, c.row.Window())
	first := c.mem.rdma() - len(pieces)
	for i := range pieces {
		pieces[i] = c.mem.slotPiece(first+i, c.mem.size)
	}
	return pieces
}

// sinkSend counts messages by phase and reposts their receives.
func sinkSend(c *Conn) (measure.Tally, error) {
	var count measure.Counter
	over := false
	c.onReceive = func(slot, _ int) error {
		if over = count.Add(c.mem.slot(slot)[0]); over {
			return nil
		}
		return c.receive(slot)
	}
	for !over {
		if _, err := c.poll(); err != nil {
			return measure.Tally{}, err
		}
	}
	return measure.Tally{Count: count.Count, Elapsed: count.Elapsed()}, nil
}

// streamRDMA writes to the target's slots in turn, or reads them; what counts has completed: it is
// placed.
func streamRDMA(c *Conn, r *result.Result) (measure.Evidence, error) { return c.countDone(r) }

func (c *Conn) remoteSlots() []dat.RMRTriplet {
	slots := make([]dat.RMRTriplet, c.row.Window())
	for i := range slots {
		slots[i] = c.remoteSlot(i, c.mem.size)
	}
	return slots
}

// countDone counts the operations that complete in the measured phase. Of a row that says how many,
// they are exactly those: the others complete before and after.
func (c *Conn) countDone(r *result.Result) (measure.Evidence, error) {
	var base, last int64
	var span timing
	err := c.pump(c.poster(), func(phase byte, now time.Time) error {
		if c.row.Count > 0 {
			if err := c.until(func() bool { return c.done == c.posted }); err != nil {
				return err
			}
			now = time.Now()
		}
		if phase == measure.StageMeasure {
			base, span.from = c.done, now
		} else {
			last, span.to = c.done, now
		}
		c.meter.turn(c, phase, now)
		return nil
	})
	if span.from.IsZero() { // no warm-up and no pass in between
		span.from = span.to
	}
	r.Count(last-base, span.elapsed())
	return measure.Evidence{Elapsed: span.elapsed()}, err
}
