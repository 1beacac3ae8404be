package seal

import (
	"encoding/binary"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Result is the outcome of Open.
type Result uint8

// Outcomes. Only Opened gives a body.
const (
	Opened    Result = iota
	Short            // the packet has no room for header and tag
	Replayed         // a packet with this counter was opened before
	TooOld           // the counter is below the replay window
	NoKey            // there is no key for the phase of the packet
	Forged           // the packet does not authenticate; its body is overwritten
	Exhausted        // too many packets did not authenticate; the connection has to end
)

// Open opens a packet in its memory and returns its body. A packet that is not opened changes nothing.
func (s *Session) Open(packet []byte, now clock.Time) (body []byte, result Result) {
	r := &s.recv
	if len(packet) < proto.HeaderSize+Overhead {
		return nil, Short
	}
	header := packet[:proto.HeaderSize:proto.HeaderSize]
	counter := r.reconstruct(binary.BigEndian.Uint32(header[proto.OffCounter:]))
	switch {
	case r.old(counter):
		return nil, TooOld
	case r.opened(counter):
		return nil, Replayed
	case r.failures >= s.limits.Failures:
		return nil, Exhausted
	}
	k := s.keyFor(header[proto.OffFlags]&byte(proto.KeyPhase), counter)
	if !k.exists() {
		return nil, NoKey
	}
	k.number(counter)
	body, err := k.aead.Open(packet[proto.HeaderSize:proto.HeaderSize], k.nonce[:], packet[proto.HeaderSize:], header)
	if err != nil {
		r.failures++
		return nil, Forged
	}
	r.mark(counter)
	if k == &r.after {
		s.follow(counter, now)
	}
	return body, Opened
}

// keyFor chooses the key of a packet by its phase bit. Counters grow from phase to phase. So a packet with the other bit
// belongs to the phase before if its counter is lower than that of any packet in the current phase. Otherwise it belongs
// to the next phase.
func (s *Session) keyFor(flag byte, counter uint64) *key {
	r := &s.recv
	switch {
	case flag == phaseFlag(r.phase):
		return &r.key
	case counter < r.first:
		return &r.before
	case !r.after.exists() && s.mayFollow():
		r.after, _ = r.derive() // after an error there is no key
	}
	return &r.after
}

// mayFollow reports whether the peer may have moved to the next phase. The end that leads expects that only after its own
// update. The other end expects it only after it has sealed a packet in its phase, which acknowledges the last update.
func (s *Session) mayFollow() bool {
	if s.leads {
		return s.send.phase == s.recv.phase+1
	}
	return s.send.counter > s.send.first
}

// follow moves the receiving direction to the next phase, and the sending direction too if it is behind.
func (s *Session) follow(counter uint64, now clock.Time) {
	r := &s.recv
	r.before, r.key, r.after = r.key, r.after, key{}
	r.phase++
	r.first, r.movedAt = counter, now
	if s.send.phase != r.phase && !s.advance(now) {
		s.send.key = key{}
	}
}
