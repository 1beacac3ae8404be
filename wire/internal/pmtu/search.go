// Package pmtu searches for the largest packet that a path passes (DPLPMTUD, RFC 8899). A connection begins with
// packets of Base bytes. Each end sends probes of larger sizes, and uses a size after the other end has confirmed the
// probe.
//
// A Search decides what to send and when; it sends nothing itself. It has one owner. Sizes are in bytes, header to
// trailer.
package pmtu

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

const (
	// Base is the size that every path must carry (BASE_PLPMTU).
	Base = 1200
	// Tries is the number of probes of a size before a smaller one is probed (MAX_PROBES).
	Tries = 3
	// Again is the time from the end of a search to the next one (PMTU_RAISE_TIMER).
	Again = 30 * time.Second
	// maxWait is the longest time between two questions to a silent peer.
	maxWait = time.Second
)

// Usual lists the UDP payloads of common links in bytes. The first six are three pairs: jumbo frames, frames of 4 KiB,
// and Ethernet frames of 1500 bytes. The first number of a pair is for IPv4, the second for IPv6. The last of the seven
// payloads leaves room for tunnel headers in an Ethernet frame.
var Usual = [...]int{8972, 8952, 4052, 4032, 1472, 1452, 1400}

// Action is what the owner of a Search has to do.
type Action uint8

// Actions.
const (
	None  Action = iota
	Probe        // send a packet of Probing bytes
	Ask          // ask the peer for an answer, because it has been silent since the last probe
)

// Search is the search on one path.
type Search struct {
	Size int // largest packet in use (PLPMTU)

	maxSize    int           // largest packet that both ends and the link support (MAX_PLPMTU)
	probedSize int           // size being probed (PROBED_SIZE); 0: no search
	probesSent int           // probes of that size that have left
	nextAt     clock.Time    // time of the next probe, or of the next search
	askedAt    clock.Time    // when the last probe left; the next one waits for a packet from the peer
	askWait    time.Duration // time from the last probe or question to the next one
}

// New returns the search on a path whose link takes packets of up to max bytes. Size is 0 until Agree is called.
func New(max int) Search { return Search{maxSize: max} }

// Agree sets the largest packet that the peer can receive, and Size to at most Base.
func (s *Search) Agree(max int) {
	s.maxSize = min(s.maxSize, max)
	s.Size = min(s.maxSize, Base)
}

// Start begins a search for sizes above Size. below is a size that does not pass.
func (s *Search) Start(now clock.Time, below int) {
	s.probesSent, s.nextAt = 0, now
	if s.probedSize = s.nextSize(below); s.probedSize == 0 {
		s.nextAt = now.Add(Again)
	}
}

// Unlimited returns the argument of Start for a search without an upper bound.
func (s *Search) Unlimited() int { return s.maxSize + 1 }

// nextSize returns the next size to probe, which is less than below. It returns 0 if no size above Size is left.
func (s *Search) nextSize(below int) int {
	switch {
	case s.Size >= s.maxSize:
		return 0
	case s.maxSize < below:
		return s.maxSize
	}
	for _, n := range Usual {
		if n < below && n > s.Size && n < s.maxSize {
			return n
		}
	}
	return 0
}

// Deadline returns when Step has to be called.
func (s *Search) Deadline() clock.Time {
	if s.Size >= s.maxSize {
		return clock.Never
	}
	return s.nextAt
}

// Step returns the next action. heardAt is the time of the peer's last packet, and pto is the probe timeout. Step
// returns None before Deadline, and if no size is left to probe. Otherwise it returns Probe: the caller sends a packet of
// s.Probing bytes. If Tries probes of a size have been lost, Step first sets s.Probing to the next smaller size.
//
// If the peer has been silent since the last probe, the loss of that probe says nothing about its size. Step then
// returns Ask instead of Probe.
func (s *Search) Step(now, heardAt clock.Time, pto time.Duration) Action {
	if now < s.Deadline() {
		return None
	}
	if s.probedSize == 0 {
		s.Start(now, s.Unlimited())
	} else if s.probesSent == Tries {
		s.Start(now, s.probedSize)
	}
	if s.probedSize == 0 {
		return None
	}
	do := Probe
	if heardAt <= s.askedAt {
		do, s.askWait = Ask, min(max(2*s.askWait, 2*pto), maxWait)
	} else {
		s.probesSent++
		s.askedAt, s.askWait = now, 2*pto
	}
	s.nextAt = now.Add(s.askWait)
	return do
}

// Probing returns the size being probed, or 0 without a search.
func (s *Search) Probing() int { return s.probedSize }

// HoldBack delays the first probe until a packet from the peer comes after now.
func (s *Search) HoldBack(now clock.Time) { s.askedAt = now }

// PeerProbes notes a probe from the peer. It shows that the peer is established, so a search that waits begins now.
func (s *Search) PeerProbes(now clock.Time) {
	if s.probesSent == 0 && s.probedSize > 0 {
		s.nextAt = min(s.nextAt, now)
	}
}

// Confirm notes that a probe of n bytes has reached the peer.
func (s *Search) Confirm(now clock.Time, n int) {
	if n == s.probedSize && n > s.Size {
		s.Size, s.probedSize, s.nextAt = n, 0, now.Add(Again)
	}
}

// Fail sets Size to Base, because packets of the old Size no longer pass. It returns the old Size.
func (s *Search) Fail() (failed int) {
	failed, s.Size = s.Size, Base
	return failed
}
