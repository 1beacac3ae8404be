package main

import (
	"encoding/binary"
	"math"
	"time"
)

// Phases of a row, in the first byte of every message that a target counts.
const (
	phaseWarm byte = 1 + iota
	phaseMeasure
	phaseEnd
)

// tally is what a target tells its initiator at the end of a row.
type tally struct {
	// count is the messages of the measured phase, and elapsed the time from the first of them
	// to the end.
	count   int64
	elapsed time.Duration
	// retransmits and drops are the target's own.
	retransmits, drops uint64
	// coreShare is the part of a core its spinning goroutine had; negative if it does not spin.
	coreShare float64
	// digest is the SHA-256 of what arrived, for the rows that ask for it.
	digest [32]byte
}

const tallySize = 5*8 + 32

func (t tally) encode(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.count))
	b = binary.BigEndian.AppendUint64(b, uint64(t.elapsed))
	b = binary.BigEndian.AppendUint64(b, t.retransmits)
	b = binary.BigEndian.AppendUint64(b, t.drops)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(t.coreShare))
	return append(b, t.digest[:]...)
}

// decodeTally reads what encode wrote; b holds at least tallySize bytes.
func decodeTally(b []byte) tally {
	t := tally{
		count:       int64(binary.BigEndian.Uint64(b)),
		elapsed:     time.Duration(binary.BigEndian.Uint64(b[8:])),
		retransmits: binary.BigEndian.Uint64(b[16:]),
		drops:       binary.BigEndian.Uint64(b[24:]),
		coreShare:   math.Float64frombits(binary.BigEndian.Uint64(b[32:])),
	}
	copy(t.digest[:], b[40:])
	return t
}

// counter counts messages by their phase.
type counter struct {
	n     int64
	first time.Time
}

// add notes one message and says whether it was the last.
func (c *counter) add(phase byte) (last bool) {
	if phase == phaseMeasure {
		if c.n == 0 {
			c.first = time.Now()
		}
		c.n++
	}
	return phase == phaseEnd
}

// elapsed is the time since the first message that counted.
func (c *counter) elapsed() time.Duration {
	if c.n == 0 {
		return 0
	}
	return time.Since(c.first)
}

// schedule leads a sender through the phases.
type schedule struct {
	measure, end time.Time
	// count is operations of the measured part, 0 for any number of them; until is the first operation
	// after them, once it is known.
	count, until int64
}

func newSchedule(row Spec) schedule {
	measure := time.Now().Add(row.Warmup)
	return schedule{measure: measure, end: measure.Add(row.Duration), count: row.Count}
}

func (s *schedule) phase(now time.Time) byte {
	switch {
	case now.Before(s.measure):
		return phaseWarm
	case now.Before(s.end):
		return phaseMeasure
	}
	return phaseEnd
}

// phaseOf is the phase of operation i, which is asked for in order.
func (s *schedule) phaseOf(i int64, now time.Time) byte {
	phase := s.phase(now)
	if phase != phaseMeasure || s.count == 0 {
		return phase
	}
	if s.until == 0 {
		s.until = i + s.count
	}
	if i >= s.until {
		return phaseEnd
	}
	return phaseMeasure
}
