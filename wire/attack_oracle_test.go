package wire

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/congestion"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Attack 5: on an idle connection, takeAck gets acknowledgements whose numbers differ from the expected ones by about
// 2^31. The checks that normally precede takeAck are bypassed. Nothing may be acknowledged, and no loop may run 2^31
// times.
func TestAttack05HalfTheNumbersWhenIdle(t *testing.T) {
	s := newSiege(t)
	if s.cb.sent.Una != s.cb.sent.Nxt {
		t.Fatal("the bystander's connection is not idle")
	}
	for _, d := range []seq.Num{1, 1<<31 - 1, 1 << 31, 1<<31 + 1, ^seq.Num(0)} {
		for _, sack := range [][]byte{nil, bytes.Repeat([]byte{0xff}, proto.MaxSACKSize)} {
			s.unmoved("an acknowledgement", func() {
				h := proto.Header{Type: proto.Ack, Ack: s.cb.sent.Una + d, Credit: s.cb.flow.creditLimit + 1<<31}
				s.cb.takeAck(&h, sack)
			}, s.cb)
		}
	}
	for _, d := range []seq.Num{1 << 31, 1<<31 + 1} { // the packet has the right tag and comes from the peer's address
		s.asFriend()
		s.unmoved("packets", func() {
			for _, typ := range established {
				h := s.header(s.cb, typ)
				h.Ack += d
				s.strike(&h, bodyFor(s.cb, typ, s.dst))
				h = s.header(s.cb, typ)
				h.PSN += d
				s.strike(&h, bodyFor(s.cb, typ, s.dst))
			}
		}, s.cb)
	}
	s.noGain()
	s.finish()
}

// Attack 6: a small packet requests a read of 1 MiB in the peer's name.
//   - If the sender does not know the tag, no response may leave. The same holds if the sender knows the tag but sends
//     from another address.
//   - If the genuine peer requests the read and acknowledges nothing, only the first window of the response may leave.
//     The packets of this window may be sent again only at growing intervals, until the connection breaks.
func TestAttack06ReadForgedSource(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		const size = 1 << 20
		s := newModeSiege(t, keys)
		cv, _ := s.join(plain)
		big := s.victim.memory(size)
		read := readChunk(big.remote, big.base, size, 0)
		r := randSource(6)
		data := func() uint64 { return s.victim.eng.Stats().TxBytes }
		start := data()
		s.unmoved("guessed tags", func() {
			s.asFriend()
			for range 1000 {
				h := s.header(s.cb, proto.Data)
				h.Tag = r.Uint32()
				s.wrong(&h, read)
			}
		}, cv, s.cb)
		s.unmoved("other addresses", func() {
			s.guise.as = func() netip.AddrPort { return anyAddr(r) }
			for range 1000 {
				h := s.header(s.cb, proto.Data)
				s.wrong(&h, read)
			}
		}, cv, s.cb)
		if got := data() - start; got != 0 {
			t.Errorf("%d bytes of answers", got)
		}
		s.noGain()
		s.guise.as, s.in, s.out = nil, traffic{}, traffic{}
		h := s.header(cv, proto.Data)
		s.strike(&h, read)
		s.until("the end of the silent peer", 5*time.Second, func() bool { s.drain(); return cv.State() == Closed })
		s.want(s.victim.connect, KindBroken)
		s.drain()
		t.Logf("%d packets, %d bytes in answer to %d packets, %d bytes", s.out.packets, s.out.bytes, s.in.packets, s.in.bytes)
		if n := s.out.types[proto.Data]; n < congestion.InitialPackets || n > 3*congestion.InitialPackets {
			t.Errorf("%d packets of data, want %d to %d", n, congestion.InitialPackets, 3*congestion.InitialPackets)
		}
		s.finish()
	})
}

// Attack 23: the answer to an RDMA access must not say whether its key, zone, right or address is wrong.
func TestAttack23OneAnswerToEveryKey(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		const base, size = 0x4000, 64
		answers := map[string][]byte{}
		for name, aim := range map[string]func(h *Host, r *Region) (key uint32, addr uint64){
			"no such key":       func(_ *Host, r *Region) (uint32, uint64) { return r.remote ^ 0x5555, base },
			"a key of the past": func(h *Host, r *Region) (uint32, uint64) { h.Unregister(r); return r.remote, base },
			"another zone":      func(_ *Host, r *Region) (uint32, uint64) { r.zone++; return r.remote, base },
			"no right":          func(_ *Host, r *Region) (uint32, uint64) { r.rights = LocalRead; return r.remote, base },
			"out of bounds":     func(_ *Host, r *Region) (uint32, uint64) { return r.remote, base + size },
		} {
			s := newModeSiege(t, keys)
			cv, _ := s.join(plain)
			r, err := s.victim.host.Register(make([]byte, size), base, 1, allRights)
			if err != nil {
				t.Fatal(err)
			}
			key, addr := aim(s.victim.host, r)
			h := s.header(cv, proto.Data)
			s.strike(&h, writeChunk(proto.Last, 8, key, addr))
			s.broken(cv, proto.ReasonAccess)
			answers[name] = bytes.Clone(s.out.last)
			s.finish()
		}
		want := answers["no such key"]
		for name, got := range answers {
			if !bytes.Equal(got, want) {
				t.Errorf("%s is told % x, an unknown key % x", name, got, want)
			}
		}
	})
}
