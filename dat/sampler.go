package dat

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// sampler is a slog.Handler that lets sampleBurst records of one message through in sampleTime and counts the
// rest: the next record that passes says how many were left out. Peers decide how often connections come and
// go; they do not decide how long the log gets.
type sampler struct {
	slog.Handler
	seen *samples
}

// samples are what a sampler and those derived from it have let through.
type samples struct {
	mu    sync.Mutex
	until time.Time
	count map[string]int // records of a message since until began
	left  map[string]int // of those not let through and not told of yet
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

// take counts a record. It reports whether the record passes, and how many did not since the last one.
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
