package main

import (
	"time"

	"github.com/datxdp/datxdp/dat"
)

// clockEvery is small operations per reading of the clock, which costs as much as one of them.
const clockEvery = 32

// pump keeps the row's depth of operations outstanding through the phases; post makes one.
func (c *conn) pump(post func(i int64, phase byte) error, turn func(phase byte, now time.Time)) error {
	plan, depth := newSchedule(c.row), int64(c.row.depth())
	step := int64(clockEvery)
	if c.row.Size >= 4096 {
		step = 1
	}
	phase := phaseWarm
	for i := int64(0); ; i++ {
		if i%step == 0 {
			now := time.Now()
			if next := plan.phase(now); next != phase {
				turn(next, now)
				phase = next
			}
			if phase == phaseEnd {
				return nil
			}
		}
		for c.posted-c.done >= depth {
			if _, err := c.poll(); err != nil {
				return err
			}
		}
		if err := post(i, phase); err != nil {
			return err
		}
	}
}

// streamSend sends messages; the target counts those of the measured phase.
func streamSend(c *conn, r *Result) (evidence, error) {
	for phase := phaseWarm; phase <= phaseEnd; phase++ {
		c.mem.source(int(phase))[0] = phase
	}
	err := c.pump(
		func(_ int64, phase byte) error { return c.send(c.mem.sources[phase]) },
		func(byte, time.Time) {})
	if err != nil {
		return evidence{}, err
	}
	t, err := c.finish()
	r.Count(t.count, t.elapsed)
	return evidence{elapsed: t.elapsed, tally: &t}, err
}

// sinkSend counts messages by phase and reposts their receives.
func sinkSend(c *conn) (tally, error) {
	var count counter
	over := false
	c.onReceive = func(slot, _ int) error {
		if over = count.add(c.mem.slot(slot)[0]); over {
			return nil
		}
		return c.receive(slot)
	}
	for !over {
		if _, err := c.poll(); err != nil {
			return tally{}, err
		}
	}
	return tally{count: count.n, elapsed: count.elapsed()}, nil
}

// streamWrite writes to the target's slots in turn; what counts has completed: it is placed.
func streamWrite(c *conn, r *Result) (evidence, error) {
	depth, slots := int64(c.row.depth()), c.remoteSlots()
	return c.countDone(r, func(i int64, _ byte) error {
		return c.write(c.mem.sources[0], slots[i%depth])
	})
}

// streamRead reads the target's slots in turn.
func streamRead(c *conn, r *Result) (evidence, error) {
	depth, slots := int64(c.row.depth()), c.remoteSlots()
	pieces := make([][]dat.LMRTriplet, depth)
	for i := range pieces {
		pieces[i] = c.mem.slotPiece(i, c.mem.size)
	}
	return c.countDone(r, func(i int64, _ byte) error {
		return c.read(pieces[i%depth], slots[i%depth])
	})
}

func (c *conn) remoteSlots() []dat.RMRTriplet {
	slots := make([]dat.RMRTriplet, c.row.depth())
	for i := range slots {
		slots[i] = c.remoteSlot(i, c.mem.size)
	}
	return slots
}

// countDone counts the operations that complete in the measured phase.
func (c *conn) countDone(r *Result, post func(int64, byte) error) (evidence, error) {
	var base, last int64
	var span timing
	err := c.pump(post, func(phase byte, now time.Time) {
		if phase == phaseMeasure {
			base, span.from = c.done, now
			return
		}
		last, span.to = c.done, now
	})
	if span.from.IsZero() { // no warm-up and no pass in between
		span.from = span.to
	}
	r.Count(last-base, span.elapsed())
	return evidence{elapsed: span.elapsed()}, err
}
