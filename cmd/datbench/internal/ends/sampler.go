package ends

import (
	"fmt"
	"time"
)

// sampler limits log lines: it lets one event per refusalEvery through and counts the others.
type sampler struct {
	last    time.Time
	skipped int
	// noted is the number of events that were skipped before the last event that was let through.
	noted int
}

// allow reports whether the event may be logged.
func (s *sampler) allow(now time.Time) bool {
	if !s.last.IsZero() && now.Sub(s.last) < refusalEvery {
		s.skipped++
		return false
	}
	s.last, s.noted, s.skipped = now, s.skipped, 0
	return true
}

// note returns a text with the number of skipped events; empty for none.
func (s *sampler) note() string {
	if s.noted == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d refused before)", s.noted)
}
