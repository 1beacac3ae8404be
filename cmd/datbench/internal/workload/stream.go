package workload

import (
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// clockEvery is the number of small operations per reading of the clock. A reading costs as much as one operation.
const clockEvery = 32

// pump posts operations to the connections round robin until the row's last stage. It keeps as many operations
// outstanding as the row's window allows. It calls post to post one operation, and setStage when the stage changes.
func (c *Conn) pump(post func(i int64, stage byte) error, setStage func(stage byte, now time.Time) error) error {
	defer c.use(0)
	plan, window := measure.NewSchedule(c.row), int64(c.row.Window())
	c.signalEvery = int64(c.row.SignalEvery())
	step := int64(clockEvery)
	if c.row.Size >= 4096 {
		step = 1
	}
	stage, lane := measure.StageWarmUp, 0
	for i := int64(0); ; i++ {
		if i%step == 0 || i == plan.Until {
			now := time.Now()
			if next := plan.StageOf(i, now); next != stage {
				if err := setStage(next, now); err != nil {
					return err
				}
				stage = next
			}
			if stage == measure.StageEnd {
				return c.signalAll(post)
			}
			c.meter.check(c, now)
		}
		for c.posted-c.done >= window {
			if _, err := c.poll(); err != nil {
				return err
			}
		}
		if err := post(i, stage); err != nil {
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

// signalAll posts one signaled request on every connection that has unsignaled requests. Its completion reports them.
func (c *Conn) signalAll(post func(i int64, stage byte) error) error {
	c.signalEvery = 1
	for lane, n := range c.unsignaled {
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

// streamSend sends messages. The target counts the messages of the measured stage.
func streamSend(c *Conn, r *result.Result) (measure.Evidence, error) {
	err := c.pump(c.poster(), func(stage byte, now time.Time) error {
		c.meter.setStage(c, stage, now)
		return nil
	})
	if err != nil {
		return measure.Evidence{}, err
	}
	t, err := c.finish()
	r.Count(t.Count, t.Elapsed)
	return measure.Evidence{Elapsed: t.Elapsed, Tally: &t}, err
}

// poster returns a function that posts the row's operation, with a slot for each outstanding operation.
func (c *Conn) poster() func(i int64, stage byte) error {
	switch c.row.Op {
	case result.Send:
		for stage := measure.StageWarmUp; stage <= measure.StageEnd; stage++ {
			c.mem.source(int(stage))[0] = stage
		}
		return func(_ int64, stage byte) error { return c.send(c.mem.sources[stage]) }
	case result.Write:
		window, slots := int64(c.row.Window()), c.remoteSlots()
		return func(i int64, _ byte) error { return c.write(c.mem.sources[0], slots[i%window]) }
	default:
		window, slots := int64(c.row.Window()), c.remoteSlots()
		pieces := c.readSegments()
		return func(i int64, _ byte) error { return c.read(pieces[i%window], slots[i%window]) }
	}
}

// readSegments returns the segments into which reads put their data. These are the last RDMA slots. So they do not
// overlap with the first RDMA slots, from which the peer of a bidirectional row reads.
func (c *Conn) readSegments() [][]dat.LMRTriplet {
	pieces := make([][]dat.LMRTriplet, c.row.Window())
	first := c.mem.rdma() - len(pieces)
	for i := range pieces {
		pieces[i] = c.mem.slotPiece(first+i, c.mem.size)
	}
	return pieces
}

// sinkSend counts messages by stage and reposts their receives.
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

// streamRDMA writes to the target's slots round robin, or reads them. It counts an operation when it completes, because
// all data of the operation is then in place.
func streamRDMA(c *Conn, r *result.Result) (measure.Evidence, error) { return c.countDone(r) }

func (c *Conn) remoteSlots() []dat.RMRTriplet {
	slots := make([]dat.RMRTriplet, c.row.Window())
	for i := range slots {
		slots[i] = c.remoteSlot(i, c.mem.size)
	}
	return slots
}

// countDone counts the operations that complete in the measured stage. If the row has a fixed count, countDone waits at
// each change of the stage until all posted operations have completed. The result is then exactly the fixed count.
func (c *Conn) countDone(r *result.Result) (measure.Evidence, error) {
	var base, last int64
	var span timing
	err := c.pump(c.poster(), func(stage byte, now time.Time) error {
		if c.row.Count > 0 {
			if err := c.pollUntil(func() bool { return c.done == c.posted }); err != nil {
				return err
			}
			now = time.Now()
		}
		if stage == measure.StageMeasure {
			base, span.from = c.done, now
		} else {
			last, span.to = c.done, now
		}
		c.meter.setStage(c, stage, now)
		return nil
	})
	if span.from.IsZero() { // the row ended before the measured stage was seen
		span.from = span.to
	}
	r.Count(last-base, span.elapsed())
	return measure.Evidence{Elapsed: span.elapsed()}, err
}
