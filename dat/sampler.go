package dat

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// sampler is a slog.Handler that limits the size of the log, because peers decide how often connections come and go.
// In each sampleTime it passes sampleBurst records with the same message and drops the rest. The next record that
// passes has the number of dropped ones as the attribute left_out.
type sampler struct {
	slog.Handler
	seen *samples
}

// samples has the counts of a sampler and of the handlers derived from it.
type samples struct {
	mu    sync.Mutex
	until time.Time      // end of the current sampleTime
	count map[string]int // records by message in the current sampleTime
	left  map[string]int // dropped records by message, not yet reported
}

const (
	sampleTime  = time.Second
	sampleBurst = 100
)

func newSampler(h slog.Handler) *sampler {
	return &sampler{h, &samples{count: make(map[string]int), left: make(map[string]int)}}
}

// Handle implements slog.Handler.
func (s *sampler) Handle(ctx context.Context, r slog.Record) error {
	left, pass := s.seen.take(r.Message, r.Time)
	if !pass {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", left))
	}
	return s.Handler.Handle(ctx, r)
}

// take counts a record. pass says whether the record passes. left is the number of records dropped since the last
// that passed.
func (s *samples) take(message string, now time.Time) (left int, pass bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.After(s.until) {
		s.until = now.Add(sampleTime)
		clear(s.count)
	}
	if s.count[message]++; s.count[message] > sampleBurst {
		s.left[message]++
		return 0, false
	}
	left = s.left[message]
	delete(s.left, message)
	return left, true
}

// WithAttrs implements slog.Handler.
func (s *sampler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &sampler{s.Handler.WithAttrs(attrs), s.seen}
}

// WithGroup implements slog.Handler.
func (s *sampler) WithGroup(name string) slog.Handler {
	return &sampler{s.Handler.WithGroup(name), s.seen}
}
