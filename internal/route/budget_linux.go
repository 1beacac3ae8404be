package route

import "time"

// budget limits the processor time of repeated work, by the generic cell rate algorithm (ITU-T I.371). The cost of the
// work is the time that it took.
type budget struct{ paid time.Time } // time from which more work is permitted

// charge adds the cost of work.
func (b *budget) charge(began, ended time.Time) {
	b.paid = later(b.paid, ended.Add(-lookupBurst)).Add(lookupShare * ended.Sub(began))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
