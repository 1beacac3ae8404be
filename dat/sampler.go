package dat

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// sampler is a slog.Handler that limits the rate of log records, because peers decide how often connections are made
// and end. During each sampleTime, it passes the first sampleBurst records of each message, and drops the other records
// of that message. The next passed record of that message then has the attribute left_out, the number of dropped
// records.
type sampler struct {
	slog.Handler
	counts *sampleCounts
}

// sampleCounts has the counts of a sampler and of the handlers derived from it.
type sampleCounts struct {
	mu           sync.Mutex
	periodEnd    time.Time      // end of the current sampleTime
	seenInPeriod map[string]int // number of records in the current sampleTime, by message
	dropped      map[string]int // number of dropped records that are not reported yet, by message
}

const (
	sampleTime  = time.Second
	sampleBurst = 100
)

func newSampler(h slog.Handler) *sampler {
	return &sampler{h, &sampleCounts{seenInPeriod: make(map[string]int), dropped: make(map[string]int)}}
}

// Handle implements slog.Handler.
func (s *sampler) Handle(ctx context.Context, r slog.Record) error {
	dropped, pass := s.counts.admit(r.Message, r.Time)
	if !pass {
		return nil
	}
	if dropped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", dropped))
	}
	err := s.Handler.Handle(ctx, r)
	if errors.Is(err, errRecordQueueFull) {
		s.counts.drop(r.Message, dropped+1)
		return nil
	}
	return err
}

// admit counts a record and reports whether the record passes. If it passes, dropped is the number of records of the
// same message that were dropped since the last record that passed.
func (s *sampleCounts) admit(message string, now time.Time) (dropped int, admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.After(s.periodEnd) {
		s.periodEnd = now.Add(sampleTime)
		clear(s.seenInPeriod)
	}
	if s.seenInPeriod[message]++; s.seenInPeriod[message] > sampleBurst {
		s.dropped[message]++
		return 0, false
	}
	dropped = s.dropped[message]
	delete(s.dropped, message)
	return dropped, true
}

// drop counts n records that were dropped.
func (s *sampleCounts) drop(message string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped[message] += n
}

// WithAttrs implements slog.Handler.
func (s *sampler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &sampler{s.Handler.WithAttrs(attrs), s.counts}
}

// WithGroup implements slog.Handler.
func (s *sampler) WithGroup(name string) slog.Handler {
	return &sampler{s.Handler.WithGroup(name), s.counts}
}
