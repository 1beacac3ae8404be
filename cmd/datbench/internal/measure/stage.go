package measure

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
)

// Stages of a row, in the first byte of every message that a target counts.
const (
	StageWarmUp byte = 1 + iota
	StageMeasure
	StageEnd
)

// Tally is the target's result, which it sends to its initiator at the end of a row.
type Tally struct {
	// Count is the messages of the measured stage, and Elapsed the time from the first of them
	// to the end.
	Count   int64
	Elapsed time.Duration
	// Retransmits and Drops are the target's own.
	Retransmits, Drops uint64
	// CoreShare is the part of a core its spinning goroutine had; negative if it does not spin.
	CoreShare float64
	// Digest is the SHA-256 of what arrived, for the rows that ask for it.
	Digest [32]byte
}

const TallySize = 5*8 + 32

func (t Tally) Encode(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.Count))
	b = binary.BigEndian.AppendUint64(b, uint64(t.Elapsed))
	b = binary.BigEndian.AppendUint64(b, t.Retransmits)
	b = binary.BigEndian.AppendUint64(b, t.Drops)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(t.CoreShare))
	return append(b, t.Digest[:]...)
}

// DecodeTally reads what Encode wrote; b holds at least TallySize bytes.
func DecodeTally(b []byte) Tally {
	t := Tally{
		Count:       int64(binary.BigEndian.Uint64(b)),
		Elapsed:     time.Duration(binary.BigEndian.Uint64(b[8:])),
		Retransmits: binary.BigEndian.Uint64(b[16:]),
		Drops:       binary.BigEndian.Uint64(b[24:]),
		CoreShare:   math.Float64frombits(binary.BigEndian.Uint64(b[32:])),
	}
	copy(t.Digest[:], b[40:])
	return t
}

// Counter counts the messages of the measured stage.
type Counter struct {
	Count int64
	first time.Time
}

// Add counts one message of a stage and reports whether it is the last.
func (c *Counter) Add(phase byte) (last bool) {
	if phase == StageMeasure {
		if c.Count == 0 {
			c.first = time.Now()
		}
		c.Count++
	}
	return phase == StageEnd
}

// Elapsed is the time since the first message that counted.
func (c *Counter) Elapsed() time.Duration {
	if c.Count == 0 {
		return 0
	}
	return time.Since(c.first)
}

// Schedule tells a sender in which stage it is.
type Schedule struct {
	Measure, end time.Time
	// count is operations of the measured part, 0 for any number of them; until is the first operation
	// after them, once it is known.
	count, Until int64
}

func NewSchedule(row plan.Spec) Schedule {
	measure := time.Now().Add(row.Warmup)
	return Schedule{Measure: measure, end: measure.Add(row.Duration), count: row.Count}
}

func (s *Schedule) Stage(now time.Time) byte {
	switch {
	case now.Before(s.Measure):
		return StageWarmUp
	case now.Before(s.end):
		return StageMeasure
	}
	return StageEnd
}

// StageOf returns the stage of operation i. Operations are asked for in order.
func (s *Schedule) StageOf(i int64, now time.Time) byte {
	phase := s.Stage(now)
	if phase != StageMeasure || s.count == 0 {
		return phase
	}
	if s.Until == 0 {
		s.Until = i + s.count
	}
	if i >= s.Until {
		return StageEnd
	}
	return StageMeasure
}
