package ends

import (
	"fmt"
	"time"
)

// sampler lets one event in refusalEvery through and counts the others.
type sampler struct {
	last    time.Time
	skipped int
	// noted is how many were skipped before the one that was let through.
	noted int
}

// allow is whether the event is let through.
func (s *sampler) allow(now time.Time) bool {
	if !s.last.IsZero() && now.Sub(s.last) < refusalEvery {
		s.skipped++
		return false
	}
	s.last, s.noted, s.skipped = now, s.skipped, 0
	return true
}

// note says how many were not let through before this one; it is empty for none.
func (s *sampler) note() string {
	if s.noted == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d refused before)", s.noted)
}
