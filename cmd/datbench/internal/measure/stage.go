package measure

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Stages of a row. The first byte of every message that a target counts holds the stage.
const (
	StageWarmUp byte = 1 + iota
	StageMeasure
	StageEnd
)

// Tally is the target's result. The target sends it to the initiator at the end of a row.
type Tally struct {
	// Count is the number of messages in the measured stage. Elapsed is the time from the first of these messages
	// to the end of the stage.
	Count   int64
	Elapsed time.Duration
	// Retransmits and Drops are the target's own counters.
	Retransmits, Drops uint64
	// CoreShare is the fraction of a core that the spinning goroutine had; negative if it does not spin.
	CoreShare float64
	// Threads is what the kernel has counted for the threads of the target's process; zero if it counts nothing.
	Threads result.Threads
	// Digest is the SHA-256 of the received data, in rows that request it.
	Digest [32]byte
}

const TallySize = 8*8 + 32

func (t Tally) Encode(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.Count))
	b = binary.BigEndian.AppendUint64(b, uint64(t.Elapsed))
	b = binary.BigEndian.AppendUint64(b, t.Retransmits)
	b = binary.BigEndian.AppendUint64(b, t.Drops)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(t.CoreShare))
	b = binary.BigEndian.AppendUint64(b, uint64(t.Threads.Elapsed))
	b = binary.BigEndian.AppendUint64(b, uint64(t.Threads.RunDelay))
	b = binary.BigEndian.AppendUint64(b, uint64(t.Threads.Involuntary))
	return append(b, t.Digest[:]...)
}

// DecodeTally decodes the result of Encode. b must hold at least TallySize bytes.
func DecodeTally(b []byte) Tally {
	t := Tally{
		Count:       int64(binary.BigEndian.Uint64(b)),
		Elapsed:     time.Duration(binary.BigEndian.Uint64(b[8:])),
		Retransmits: binary.BigEndian.Uint64(b[16:]),
		Drops:       binary.BigEndian.Uint64(b[24:]),
		CoreShare:   math.Float64frombits(binary.BigEndian.Uint64(b[32:])),
		Threads: result.Threads{
			Elapsed:     result.Microseconds(binary.BigEndian.Uint64(b[40:])),
			RunDelay:    result.Microseconds(binary.BigEndian.Uint64(b[48:])),
			Involuntary: int64(binary.BigEndian.Uint64(b[56:])),
		},
	}
	copy(t.Digest[:], b[64:])
	return t
}

// Counter counts the messages of the measured stage.
type Counter struct {
	Count int64
	first time.Time
}

// Add counts one message of a stage and reports whether it is the last.
func (c *Counter) Add(stage byte) (last bool) {
	if stage == StageMeasure {
		if c.Count == 0 {
			c.first = time.Now()
		}
		c.Count++
	}
	return stage == StageEnd
}

// Elapsed returns the time since the first counted message.
func (c *Counter) Elapsed() time.Duration {
	if c.Count == 0 {
		return 0
	}
	return time.Since(c.first)
}

// Schedule tells a sender the stage of each operation.
type Schedule struct {
	Measure, end time.Time
	// maxOperations is the number of operations to measure; if it is 0, only the duration ends the stage. Until is the
	// number of the first operation after the measured stage, or 0 if that operation is not known yet.
	maxOperations, Until int64
}

func NewSchedule(row plan.Spec) Schedule {
	measure := time.Now().Add(row.Warmup)
	return Schedule{Measure: measure, end: measure.Add(row.Duration), maxOperations: row.Count}
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

// StageOf returns the stage of operation i. Calls must have ascending i.
func (s *Schedule) StageOf(i int64, now time.Time) byte {
	stage := s.Stage(now)
	if stage != StageMeasure || s.maxOperations == 0 {
		return stage
	}
	if s.Until == 0 {
		s.Until = i + s.maxOperations
	}
	if i >= s.Until {
		return StageEnd
	}
	return StageMeasure
}
