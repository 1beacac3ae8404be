package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// Attack 5: false acknowledgements. If their sender does not know the connection, they must change nothing. If their
// sender is the peer itself, their effect must be one that a true acknowledgement could have. The connection must
// continue when the genuine peer sends again.
func TestAttack05FalseAcknowledgements(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		ones := bytes.Repeat([]byte{0xff}, proto.MaxSACKSize)
		for _, tc := range []struct {
			name string
			lie  func(h *proto.Header, c *Conn)
			sack []byte
		}{
			{"of one packet not sent", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Nxt + 1 }, nil},
			{"of many packets not sent", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Nxt + 10*maxWindow }, nil},
			{"half the numbers ahead", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Una + 1<<31 - 1 }, nil},
			{"half the numbers away", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Una + 1<<31 }, nil},
			{"half the numbers behind", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Una - 1<<31 + 1 }, nil},
			{"of the past", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Una - 1 }, nil},
			{"SACK of packets never sent", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Una }, append(make([]byte, 8), ones[8:]...)},
			{"SACK beside a false Ack", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Nxt + 5 }, ones},
			{"credit taken back", func(h *proto.Header, c *Conn) { h.Credit = c.flow.creditLimit - 3 }, nil},
			{"credit half the numbers back", func(h *proto.Header, c *Conn) { h.Credit = c.flow.creditLimit - 1<<31 + 1 }, nil},
			{"echo of the future", func(h *proto.Header, _ *Conn) { h.Echo = h.TS + 1<<20 }, nil},
			{"echo of long ago", func(h *proto.Header, _ *Conn) { h.Echo = h.TS - 1<<30 }, nil},
			{"the other epoch", func(h *proto.Header, c *Conn) { h.Flags, h.Ack = proto.EpochSeen, c.sent.Nxt }, nil},
		} {
			t.Run(tc.name, func(t *testing.T) {
				s := newModeSiege(t, keys)
				cv, _ := s.join(plain)
				mem, there := s.victim.memory(64), s.foe.memory(64)
				for i := range 4 {
					s.victim.post(cv, cv.PostWrite(mem.seg(0, 64), uint64(i), there.at(0), 0))
					s.victim.eng.Poll(Time(s.net.Now()))
				}
				h := s.header(cv, proto.Ack)
				tc.lie(&h, cv)
				if tc.sack != nil {
					h.Flags |= proto.HasSACK
				}
				blind := h
				blind.CID ^= 1
				s.unmoved("a stranger's", func() {
					for range 10 {
						s.strike(&blind, tc.sack)
					}
				}, cv, s.cb)
				was := standingOf(cv)
				for range 10 {
					s.strike(&h, tc.sack)
				}
				got := standingOf(cv)
				was.heard, was.newest = got.heard, got.newest // the packet counts as a sign of life
				if got != was {
					t.Errorf("the connection was\n%+v, now it is\n%+v", was, got)
				}
				if p := cv.sent.Pipe(); p < 0 || p > cv.sent.Nxt.Sub(cv.sent.Una) || cv.sent.Lost() < 0 {
					t.Errorf("pipe %d, lost %d of %d", p, cv.sent.Lost(), cv.sent.Nxt.Sub(cv.sent.Una))
				}
				s.foe.down = false // the genuine peer sends again
				s.until("the writes", time.Second, func() bool { return s.victim.request.Len() == 4 })
				s.drop(cv)
				s.finish()
			})
		}
	})
}

// Attacks 5 and 19: the peer sends 1000 SACKs of all outstanding packets, but no cumulative acknowledgement. The victim
// must send at most one packet per SACK, plus one window of packets. No request may complete before its cumulative
// acknowledgement.
func TestAttack05SACKThatIsTakenBack(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		cv, _ := s.join(plain)
		mem, there := s.victim.memory(4096), s.foe.memory(4096)
		for i := range 16 {
			s.victim.post(cv, cv.PostWrite(mem.seg(0, 4096), uint64(i), there.at(0), 0))
		}
		s.victim.eng.Poll(Time(s.net.Now()))
		out := cv.sent.Nxt.Sub(cv.sent.Una)
		h := s.header(cv, proto.Ack)
		h.Flags |= proto.HasSACK
		sent := s.victim.eng.Stats().TxPackets
		for range 1000 {
			s.strike(&h, bytes.Repeat([]byte{0xff}, proto.MaxSACKSize))
		}
		if n := s.victim.request.Len(); n != 0 {
			t.Errorf("%d requests completed", n)
		}
		if got := s.victim.eng.Stats().TxPackets - sent; got > 1000+maxWindow {
			t.Errorf("1000 SACKs of %d packets were answered by %d packets", out, got)
		}
		if cv.sent.Pipe() < 0 || cv.sent.Lost() < 0 || cv.sent.Nxt.Sub(cv.sent.Una) > maxWindow {
			t.Errorf("pipe %d, lost %d, outstanding %d", cv.sent.Pipe(), cv.sent.Lost(), cv.sent.Nxt.Sub(cv.sent.Una))
		}
		s.work()
		s.foe.down = false
		s.until("the writes", time.Second, func() bool { return s.victim.request.Len() == 16 })
		s.drop(cv)
		s.finish()
	})
}
