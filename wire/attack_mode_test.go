package wire

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// eachMode runs a test in plaintext mode, in which keys is nil, and in secure mode. In secure mode, the foe of a siege
// has keys of its own and seals the packets of its connections.
func eachMode(t *testing.T, test func(t *testing.T, keys *seal.Limits)) {
	t.Run("plaintext", func(t *testing.T) { test(t, nil) })
	t.Run("secure", func(t *testing.T) { test(t, usual) })
}

// eachModeInFull is eachMode for tests that take long under the race detector. With -short it leaves out secure mode, which
// make test-all runs.
func eachModeInFull(t *testing.T, test func(t *testing.T, keys *seal.Limits)) {
	if !testing.Short() {
		eachMode(t, test)
		return
	}
	t.Run("plaintext", func(t *testing.T) { test(t, nil) })
}

// newModeSiege is newSiege in the mode of keys.
func newModeSiege(t testing.TB, keys *seal.Limits) *siege {
	t.Helper()
	return newModeSiegeOn(t, simlink.Config{Frames: siegeFrames, Delay: time.Microsecond, Seed: 1}, keys)
}

// newModeSiegeOn is newSiegeOn in the mode of keys.
func newModeSiegeOn(t testing.TB, cfg simlink.Config, keys *seal.Limits) *siege {
	t.Helper()
	return newSiegeOf(t, cfg, netip.AddrFrom4([4]byte{10}), keys)
}

// foeEnd returns the foe's end of the connection that has the ID cid at the victim. It returns nil in plaintext mode, and
// if the connection is not the foe's.
func (s *siege) foeEnd(cid uint32) *Conn {
	cv := s.victim.eng.lookup(cid)
	if s.keys == nil || cv == nil {
		return nil
	}
	if cf := s.foe.eng.lookup(cv.peerCID); cf != nil && cf.peerCID == cid && cf.keys != nil {
		return cf
	}
	return nil
}

// sealed returns a packet with header h, sealed with keys of its sender.
func (s *siege) sealed(k *keys, h *proto.Header, body []byte) []byte {
	s.t.Helper()
	raw := make([]byte, proto.HeaderSize, proto.HeaderSize+len(body)+seal.Overhead)
	h.Put(raw)
	raw, ok := k.Seal(append(raw, body...), Time(s.net.Now()))
	if !ok {
		s.t.Fatal("not sealed")
	}
	return raw
}

// guess is send for an attacker without keys. In secure mode it writes a counter that the receiver expects, and a tag
// that is wrong. In plaintext mode, the caller chooses the tag.
func (s *siege) guess(h *proto.Header, body []byte) {
	c := s.victim.eng.lookup(h.CID)
	if s.keys == nil || c == nil || !h.Type.Sealed() {
		s.send(h, body)
		return
	}
	h.Tag = uint32(s.opposite(c).keys.Sealed())
	raw := make([]byte, proto.HeaderSize, proto.HeaderSize+len(body)+seal.Overhead)
	h.Put(raw)
	s.sendRaw(append(append(raw, body...), bytes.Repeat([]byte{0xa5}, seal.Overhead)...))
}

// opposite returns the peer's end of a connection of the victim.
func (s *siege) opposite(c *Conn) *Conn {
	if c == s.cb {
		return s.ca
	}
	return s.foe.eng.lookup(c.peerCID)
}

// wrong is strike for an attacker without keys.
func (s *siege) wrong(h *proto.Header, body []byte) {
	s.guess(h, body)
	s.land()
}

// refused returns the number of packets that an engine has refused before they had an effect on a connection.
func refused(e *Engine) uint64 {
	st := e.Stats()
	return st.UnknownConnection + st.Unopened + st.Replayed + st.BadPackets + st.BadChecksum
}

// goodbye returns the body of the last packet to the foe, if it is a Close. It returns nil otherwise.
func (s *siege) goodbye() []byte {
	var h proto.Header
	b := bytes.Clone(s.out.last)
	if !h.Parse(b) || h.Type != proto.Close {
		return nil
	}
	if s.keys == nil {
		return b[proto.HeaderSize : len(b)-proto.TrailerSize]
	}
	cf := s.foe.eng.lookup(h.CID)
	if cf == nil || cf.keys == nil {
		return nil
	}
	body, result := cf.keys.Open(b, Time(s.net.Now()))
	if result != seal.Opened {
		s.t.Errorf("Close does not open: %v", result)
	}
	return body
}
