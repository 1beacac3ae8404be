package seal

import (
	"encoding/binary"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Overhead is the size of the tag in bytes. It is the trailer of a sealed packet.
const Overhead = proto.SealSize

// Seal draws a counter and seals a packet, which consists of header and body and has room for Overhead further bytes. It
// writes the lower half of the counter and the flag KeyPhase into the header. It returns the packet with the tag. If the
// key is used up and no update is possible, it returns false, and the connection has to end.
func (s *Session) Seal(packet []byte, now clock.Time) (sealed []byte, ok bool) {
	if s.leads && s.updateDue(now) && s.mayUpdate() && !s.advance(now) {
		return nil, false
	}
	x := &s.send
	if !x.exists() || x.counter-x.first >= s.limits.Packets {
		return nil, false
	}
	header := packet[:proto.HeaderSize:proto.HeaderSize]
	binary.BigEndian.PutUint32(header[proto.OffCounter:], uint32(x.counter))
	header[proto.OffFlags] = header[proto.OffFlags]&^byte(proto.KeyPhase) | phaseFlag(x.phase)
	x.number(x.counter)
	x.counter++
	return x.aead.Seal(packet[:proto.HeaderSize], x.nonce[:], packet[proto.HeaderSize:], header), true
}

func phaseFlag(phase uint32) byte {
	if phase%2 == 0 {
		return 0
	}
	return byte(proto.KeyPhase)
}

// updateDue reports whether a key of either direction is nearly used up, or old.
func (s *Session) updateDue(now clock.Time) bool {
	sealed, opened := s.send.counter-s.send.first, s.recv.next-s.recv.first
	return sealed >= s.limits.Update || opened >= s.limits.Update || now.Sub(s.since) >= s.limits.Age
}

// mayUpdate reports whether this end has opened a packet in the current phase, which acknowledges the last update, and
// the key before is dropped.
func (s *Session) mayUpdate() bool {
	r := &s.recv
	return s.send.phase == r.phase && r.next > r.first && !r.before.exists()
}

// advance moves the sending direction to the next phase.
func (s *Session) advance(now clock.Time) bool {
	x := &s.send
	var err error
	if x.key, err = x.derive(); err != nil {
		return false
	}
	x.phase++
	x.first, s.since = x.counter, now
	return true
}
