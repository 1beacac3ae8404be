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

// tally is the result of a run: the number of messages and their time. times has the round trips.
type tally struct {
	n       int64
	elapsed time.Duration
	times   *hdrhistogram.Histogram
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

// ping measures round trips of one message at a time.
func (a Ask) ping(p pipe) (tally, error) {
	t := tally{times: hdrhistogram.New(1, int64(longest), 3)}
	message, plan := make([]byte, a.Size), newSchedule(a)
	for now := time.Now(); ; {
		if err := errors.Join(p.send(message), p.flush()); err != nil {
			return t, err
		}
		if _, err := p.recv(); err != nil {
			return t, err
		}
		start := now
		now = time.Now()
		switch plan.phase(now) {
		case phaseMeasure:
			t.n++
			_ = t.times.RecordValue(int64(min(now.Sub(start), longest))) // always in range
		case phaseEnd:
			t.elapsed = now.Sub(plan.measure)
			return t, nil
		}
	}
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
