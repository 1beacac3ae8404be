// Package pmtu searches for the largest packet that a path passes (DPLPMTUD, RFC 8899). A connection begins with
// packets of Base bytes. Each end probes larger sizes, and uses a size once the other end has confirmed its probe.
//
// A Search decides what to send and when, and sends nothing. It has one owner. Sizes are in bytes, header to trailer.
package pmtu

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

const (
	// Base is the size that every path has to carry (BASE_PLPMTU).
	Base = 1200
	// Tries is the number of probes of a size before a smaller one is probed (MAX_PROBES).
	Tries = 3
	// Again is the time from the end of a search to the next one (PMTU_RAISE_TIMER).
	Again = 30 * time.Second
	// maxWait bounds the time between two questions to a silent peer.
	maxWait = time.Second
)

// Usual are the UDP payloads of common links in bytes: jumbo frames, 4 KiB and Ethernet, each for IPv4 and then for
// IPv6, and Ethernet with tunnel headers.
var Usual = [...]int{8972, 8952, 4052, 4032, 1472, 1452, 1400}

// Action is what the owner of a Search has to do.
type Action uint8

// Actions.
const (
	None  Action = iota
	Probe        // send a packet of Probing bytes
	Ask          // ask the peer, which has been silent since the last probe
)

// Search is the search on one path.
type Search struct {
	Size int // largest packet in use (PLPMTU)

	max    int           // largest packet that both ends and the link support (MAX_PLPMTU)
	probed int           // size being probed (PROBED_SIZE); 0: no search
	tries  int           // probes of that size
	at     clock.Time    // next probe, or next search
	asked  clock.Time    // when the last probe left; the next one waits for a packet of the peer
	wait   time.Duration // from the last probe or question to the next
}

// New returns the search on a path whose link takes packets of max bytes. Size is 0 until Agree.
func New(max int) Search { return Search{max: max} }

// Agree sets the largest packet that the peer can receive.
func (s *Search) Agree(max int) {
	s.max = min(s.max, max)
	s.Size = min(s.max, Base)
}

// Start begins a search for sizes above Size. below is a size that is known not to pass.
func (s *Search) Start(now clock.Time, below int) {
	s.tries, s.at = 0, now
	if s.probed = s.smaller(below); s.probed == 0 {
		s.at = now.Add(Again)
	}
}

// Unlimited returns the argument of Start for a search without an upper bound.
func (s *Search) Unlimited() int { return s.max + 1 }

// smaller returns the next size to probe below a size; 0 if none above Size is left.
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

// Deadline returns when Step has to be called.
func (s *Search) Deadline() clock.Time {
	if s.Size >= s.max {
		return clock.Never
	}
	return s.at
}

// Step returns the next action: nothing before Deadline, else a probe of the same size or of the next smaller one.
// heard is when the peer's last packet came. If the peer has been silent since the last probe, Step asks the peer
// instead, because the loss of that probe says nothing about the size. pto is the probe timeout.
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

// Probing returns the size being probed; 0 without a search.
func (s *Search) Probing() int { return s.probed }

// HoldBack delays the first probe until a packet of the peer comes after now.
func (s *Search) HoldBack(now clock.Time) { s.asked = now }

// PeerProbes notes a probe of the peer. It shows that the peer is established, so a search that waits begins now.
func (s *Search) PeerProbes(now clock.Time) {
	if s.tries == 0 && s.probed > 0 {
		s.at = min(s.at, now)
	}
}

// Confirm notes that a probe of n bytes has arrived.
func (s *Search) Confirm(now clock.Time, n int) {
	if n == s.probed && n > s.Size {
		s.Size, s.probed, s.at = n, 0, now.Add(Again)
	}
}

// Fail returns to Base, because packets of Size no longer pass. It returns the old Size.
func (s *Search) Fail() (failed int) {
	failed, s.Size = s.Size, Base
	return failed
}
