// Package pmtu searches for the largest packet that a path passes (DPLPMTUD, RFC 8899). A connection begins with
// packets of Base bytes. Each end sends probes of larger sizes, and uses a size after the other end has confirmed the
// probe.
//
// The same probes test the size in use, if packets of it seem to get lost (RFC 8899 §4.3): Verify begins such a test.
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
	// AgainMin is the time from the end of the first search, or of the first one after Fail, to the next one. The time
	// doubles up to Again (PMTU_RAISE_TIMER). Loss of packets may have ended a search too early, so the search soon
	// begins again. A path that passes no more costs few probes.
	AgainMin = time.Second
	Again    = 30 * time.Second
	// VerifyTries is the number of probes of the size in use that must be lost in a row before the path counts as a black
	// hole for that size. VerifyEvery is the least time between two of them. A full queue may drop all large packets
	// for some milliseconds. With two jumbo flows in a switch buffer of 128 KB at 25 Gb/s, one starved for up to 40 ms.
	VerifyTries = 16
	VerifyEvery = 2 * time.Millisecond
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
	None   Action = iota
	Probe         // send a packet of Probing bytes
	Ask           // ask the peer for an answer, because it has been silent since the last probe
	Test          // send a packet of Probing bytes, and ask the peer for an answer
	Failed        // packets of the size in use no longer pass
)

// Search is the search on one path.
type Search struct {
	Size int // largest packet in use (PLPMTU)

	maxSize    int32         // largest packet that both ends and the link support (MAX_PLPMTU)
	probedSize int32         // size being probed (PROBED_SIZE); 0: no search
	probesSent int32         // probes of that size that have left
	pauses     uint8         // searches that have ended since the first one, or since Fail
	verifying  bool          // the probes test Size, the size in use
	nextAt     clock.Time    // time of the next probe, or of the next search
	askedAt    clock.Time    // when the last probe left; the next one waits for a packet from the peer
	askWait    time.Duration // time from the last probe or question to the next one
}

// New returns the search on a path whose link takes packets of up to max bytes. Size is 0 until Agree is called.
func New(max int) Search { return Search{maxSize: int32(max)} }

// Agree sets the largest packet that the peer can receive, and Size to at most Base.
func (s *Search) Agree(max int) {
	s.maxSize = min(s.maxSize, int32(max))
	s.Size = min(int(s.maxSize), Base)
}

// Start begins a search for sizes above Size. below is a size that does not pass.
func (s *Search) Start(now clock.Time, below int) {
	s.probesSent, s.nextAt = 0, now
	if s.probedSize = s.nextSize(below); s.probedSize == 0 {
		s.pause(now)
	}
}

// pause ends a search.
func (s *Search) pause(now clock.Time) {
	s.probedSize, s.nextAt = 0, now.Add(min(AgainMin<<s.pauses, Again))
	s.pauses = min(s.pauses+1, 16)
}

// Verify begins to test the size in use. It does nothing while such a test runs.
func (s *Search) Verify(now clock.Time) {
	if !s.verifying {
		s.verifying, s.probedSize, s.probesSent, s.nextAt = true, int32(s.Size), 0, now
	}
}

// EndVerify ends a test of the size in use, because packets pass. It does nothing if there is no test.
func (s *Search) EndVerify(now clock.Time) {
	if s.verifying {
		s.verifying = false
		s.Start(now, s.Unlimited())
	}
}

// Unlimited returns the argument of Start for a search without an upper bound.
func (s *Search) Unlimited() int { return int(s.maxSize) + 1 }

// nextSize returns the next size to probe, which is less than below. It returns 0 if no size above Size is left.
func (s *Search) nextSize(below int) int32 {
	most := int(s.maxSize)
	switch {
	case s.Size >= most:
		return 0
	case most < below:
		return s.maxSize
	}
	for _, n := range Usual {
		if n < below && n > s.Size && n < most {
			return int32(n)
		}
	}
	return 0
}

// Deadline returns when Step has to be called.
func (s *Search) Deadline() clock.Time {
	if s.Size >= int(s.maxSize) && !s.verifying {
		return clock.Never
	}
	return s.nextAt
}

// Step returns the next action. heardAt is the time of the peer's last packet, and pto is the probe timeout. Step
// returns None before Deadline, and if no size is left to probe. Otherwise it returns Probe: the caller sends a packet of
// s.Probing bytes. If Tries probes of a size have been lost, Step first sets s.Probing to the next smaller size. In a test
// of the size in use, Step returns Test instead of Probe, and Failed if VerifyTries probes have been lost.
//
// If the peer has been silent since the last probe, the loss of that probe says nothing about its size. Step then
// returns Ask.
func (s *Search) Step(now, heardAt clock.Time, pto time.Duration) Action {
	if now < s.Deadline() {
		return None
	}
	answered := heardAt > s.askedAt
	switch {
	case s.verifying && s.probesSent == VerifyTries && answered:
		return Failed
	case s.verifying:
	case s.probedSize == 0:
		s.Start(now, s.Unlimited())
	case s.probesSent == Tries:
		s.Start(now, int(s.probedSize))
	}
	switch {
	case s.probedSize == 0:
		return None
	case !answered:
		return s.wait(now, Ask, min(max(2*s.askWait, 2*pto), maxWait))
	}
	s.probesSent++
	s.askedAt = now
	if s.verifying {
		return s.wait(now, Test, max(2*pto, VerifyEvery))
	}
	return s.wait(now, Probe, 2*pto)
}

// wait sets the time until the next step, and returns the action of this one.
func (s *Search) wait(now clock.Time, do Action, d time.Duration) Action {
	s.askWait, s.nextAt = d, now.Add(d)
	return do
}

// Probing returns the size being probed, or 0 without a search.
func (s *Search) Probing() int { return int(s.probedSize) }

// ProbeSent returns when the probe of the size being probed has left. It reports false if there were several: an answer does
// not say which of them it answers.
func (s *Search) ProbeSent() (at clock.Time, ok bool) { return s.askedAt, s.probesSent == 1 }

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
	switch {
	case s.verifying && n == s.Size:
		s.EndVerify(now)
	case n == int(s.probedSize) && n > s.Size:
		s.Size = n
		s.pause(now)
	}
}

// Fail sets Size to Base, because packets of the old Size no longer pass.
func (s *Search) Fail() { s.Size, s.probedSize, s.verifying, s.pauses = Base, 0, false, 0 }
