package gopeer

import (
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// In a stream, the first byte of a message is the phase that the message belongs to.
const (
	phaseWarmup = iota
	phaseMeasure
	phaseEnd
)

// tally is the result of a run: the number of messages and their time. times has the round trips. all is the number of
// round trips with those before the measured time, and cpu the CPU time of this process meanwhile.
type tally struct {
	n       int64
	elapsed time.Duration
	times   *hdrhistogram.Histogram
	all     int64
	cpu     time.Duration
}

// put encodes a tally into a message; tallyOf decodes it.
func (t tally) put(message []byte) {
	binary.BigEndian.PutUint64(message, uint64(t.n))
	binary.BigEndian.PutUint64(message[8:], uint64(t.elapsed))
}

func tallyOf(message []byte) tally {
	return tally{n: int64(binary.BigEndian.Uint64(message)), elapsed: time.Duration(binary.BigEndian.Uint64(message[8:]))}
}

// schedule says which messages are measured.
type schedule struct{ measure, end time.Time }

func newSchedule(a Ask) schedule {
	measure := time.Now().Add(a.Warmup)
	return schedule{measure, measure.Add(a.Duration)}
}

func (s schedule) phase(now time.Time) byte {
	switch {
	case now.Before(s.measure):
		return phaseWarmup
	case now.Before(s.end):
		return phaseMeasure
	}
	return phaseEnd
}

// longest is the longest round trip that the histogram can record.
const longest = 10 * time.Second

// ping measures round trips of one message at a time. A round trip counts if it began in the measured time, so that the
// last one counts however long it takes; there is at least one.
func (a Ask) ping(p pipe) (tally, error) {
	t := tally{times: hdrhistogram.New(1, int64(longest), 3)}
	message := make([]byte, a.Size)
	if err := roundTrip(p, message); err != nil { // it connects, if the library does so when it has to
		return t, err
	}
	plan, before := newSchedule(a), CPUTime()
	for now := time.Now(); ; {
		if err := roundTrip(p, message); err != nil {
			return t, err
		}
		start := now
		now = time.Now()
		t.all++
		if !start.Before(plan.measure) {
			t.n++
			_ = t.times.RecordValue(int64(min(now.Sub(start), longest))) // always in range
		}
		if t.n > 0 && plan.phase(now) == phaseEnd {
			t.elapsed, t.cpu = now.Sub(plan.measure), CPUTime()-before
			return t, nil
		}
	}
}

func roundTrip(p pipe, message []byte) error {
	if err := errors.Join(p.send(message), p.flush()); err != nil {
		return err
	}
	_, err := p.recv()
	return err
}

// clockEvery is the number of small messages between two reads of the clock. A read takes as long as sending one
// message to a buffer.
const clockEvery = 64

// stream sends as fast as the pipe accepts messages. The receiver counts them.
func (a Ask) stream(p pipe) (tally, error) {
	message, plan := make([]byte, a.Size), newSchedule(a)
	every := clockEvery
	if a.Size > bufferSize {
		every = 1
	}
	for i := 0; message[0] != phaseEnd; i++ {
		if i%every == 0 {
			message[0] = plan.phase(time.Now())
		}
		if err := p.send(message); err != nil {
			return tally{}, err
		}
	}
	if err := p.flush(); err != nil {
		return tally{}, err
	}
	answer, err := p.recv()
	if err != nil {
		return tally{}, err
	}
	return tallyOf(answer), nil
}

// over measures the requested metric over a pipe.
func (a Ask) over(p pipe) (tally, error) {
	if a.echoed() {
		return a.ping(p)
	}
	return a.stream(p)
}

// echo sends back every message until the end of the pipe.
func echo(p pipe) error {
	for {
		message, err := p.recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := errors.Join(p.send(message), p.flush()); err != nil {
			return err
		}
	}
}

// sink counts the measured messages of a stream, and sends the tally at the end.
func sink(p pipe) error {
	var t tally
	var start time.Time
	for {
		message, err := p.recv()
		if err != nil {
			return err
		}
		switch message[0] {
		case phaseMeasure:
			if t.n == 0 {
				start = time.Now()
			}
			t.n++
		case phaseEnd:
			if t.n > 0 {
				t.elapsed = time.Since(start)
			}
			answer := make([]byte, len(message))
			t.put(answer)
			return errors.Join(p.send(answer), p.flush())
		}
	}
}
