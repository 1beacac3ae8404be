package ends

import (
	"net/netip"
	"time"
)

// penalties holds the addresses whose rows failed. Requests from such an address are refused for a limited time.
// Otherwise one address could reserve the target again and again without using it, and keep other clients out.
type penalties map[netip.Addr]penalty

// penalty is the exponential backoff of one address.
type penalty struct {
	lasts time.Duration
	until time.Time
}

// add begins a penalty. The new penalty is twice as long as the last penalty of the address, unless that penalty ended
// long ago.
func (p penalties) add(a netip.Addr, now time.Time) {
	lasts := penaltyMin
	old, known := p[a]
	if known && now.Sub(old.until) < penaltyMemory {
		lasts = min(2*old.lasts, penaltyMax)
	}
	if !known && len(p) >= maxPenalties {
		delete(p, p.oldest())
	}
	p[a] = penalty{lasts, now.Add(lasts)}
}

// oldest returns the address whose penalty ends first.
func (p penalties) oldest() (first netip.Addr) {
	for a, of := range p {
		if !first.IsValid() || of.until.Before(p[first].until) {
			first = a
		}
	}
	return first
}

// left returns how long the address is still refused; 0 or less if it is not refused.
func (p penalties) left(a netip.Addr, now time.Time) time.Duration {
	of, known := p[a]
	if !known {
		return 0
	}
	return of.until.Sub(now)
}

// clear forgets an address whose row was served.
func (p penalties) clear(a netip.Addr) { delete(p, a) }
