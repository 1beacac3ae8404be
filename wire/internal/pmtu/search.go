// Package pmtu searches for the largest packet that a path passes (DPLPMTUD, RFC 8899). Only sizes that are known to arrive
// carry data. A connection begins with Base, and each end probes larger sizes, which the other one confirms.
//
// A Search decides what to send and when. It sends nothing, and has one owner. Sizes are in bytes, header to trailer.
package pmtu

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

const (
	// Base is the size that every path has to carry (BASE_PLPMTU).
	Base = 1200
	// Tries is how often a size is probed before a smaller one is (MAX_PROBES).
	Tries = 3
	// Again is the time after which the search begins anew (PMTU_RAISE_TIMER).
	Again = 30 * time.Second
	// maxWait bounds the time between two questions to a silent peer.
	maxWait = time.Second
)

// Usual are the UDP payloads that common links carry: jumbo frames, 4 KiB, Ethernet, and
// Ethernet less what tunnels take; IPv4 before IPv6.
var Usual = [...]int{8972, 8952, 4052, 4032, 1472, 1452, 1400}

// Action is what the owner of a Search is to do.
type Action uint8

// Actions.
const (
	None  Action = iota
	Probe        // send a packet of the size Probing
	Ask          // ask a peer that has been silent since the last probe
)

// Search is the state of one path.
type Search struct {
	Size int // largest packet that carries data (PLPMTU)

	max    int        // largest packet that both ends and the link allow (MAX_PLPMTU)
	probed int        // being probed (PROBED_SIZE); 0: the search is over
	tries  int        // of it
	at     clock.Time // next try, or next search
	asked  clock.Time // when the last probe left; a further one leaves when the peer was heard since
	wait   time.Duration
}

// New is the search on a path whose link takes packets of max bytes. Size is 0 until Agree.
func New(max int) Search { return Search{max: max} }

// Agree takes in what the peer can receive.
func (s *Search) Agree(max int) {
	s.max = min(s.max, max)
	s.Size = min(s.max, Base)
}

// Start begins to search above Size, and below a size that is known not to pass. Step goes on.
func (s *Search) Start(now clock.Time, below int) {
	s.tries, s.at = 0, now
	if s.probed = s.smaller(below); s.probed == 0 {
		s.at = now.Add(Again)
	}
}

// Unlimited is a size for Start below which everything may pass.
func (s *Search) Unlimited() int { return s.max + 1 }

// smaller is the next size to try below another one; 0 if there is none above Size.
func (s *Search) smaller(below int) int {
	switch {
	case s.Size >= s.max:
		return 0
	case s.max < below:
		return s.max
	}
	for _, n := range Usual {
		if n < below && n > s.Size && n < s.max {
			return n
		}
	}
	return 0
}

// Deadline is when Step is to be called.
func (s *Search) Deadline() clock.Time {
	if s.Size >= s.max {
		return clock.Never
	}
	return s.at
}

// Step tries the size again, or the next smaller one, if it is time. heard is when the peer was last heard, pto how long
// its answer may take.
func (s *Search) Step(now, heard clock.Time, pto time.Duration) Action {
	if now < s.Deadline() {
		return None
	}
	if s.probed == 0 {
		s.Start(now, s.Unlimited())
	} else if s.tries == Tries {
		s.Start(now, s.probed)
	}
	if s.probed == 0 {
		return None
	}
	do := Probe
	if heard <= s.asked {
		do, s.wait = Ask, min(max(2*s.wait, 2*pto), maxWait)
	} else {
		s.tries++
		s.asked, s.wait = now, 2*pto
	}
	s.at = now.Add(s.wait)
	return do
}

// Probing is the size that is probed; 0 if the search is over.
func (s *Search) Probing() int { return s.probed }

// HoldBack has the first probe wait until the peer is heard after now.
func (s *Search) HoldBack(now clock.Time) { s.asked = now }

// PeerProbes takes in that the peer searches: it is there, so that a search which has not begun does so now.
func (s *Search) PeerProbes(now clock.Time) {
	if s.tries == 0 && s.probed > 0 {
		s.at = min(s.at, now)
	}
}

// Confirm takes in that a probe of n bytes has arrived.
func (s *Search) Confirm(now clock.Time, n int) {
	if n == s.probed && n > s.Size {
		s.Size, s.probed, s.at = n, 0, now.Add(Again)
	}
}

// Fail goes back to Base, since the path does not pass packets of Size any more, which it returns.
func (s *Search) Fail() (failed int) {
	failed, s.Size = s.Size, Base
	return failed
}
