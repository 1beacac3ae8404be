package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// The tests named TestAttack…Secure try what an attacker on the path can do to a connection in secure mode. The foe has
// the address of the friend, and reads what the victim receives and sends.

// fresh returns a packet that the friend has sealed for the victim, and that the victim has not received.
func (s *siege) fresh(t proto.Type, body []byte) []byte {
	s.t.Helper()
	h := s.header(s.cb, t)
	b := make([]byte, proto.HeaderSize, proto.HeaderSize+len(body)+seal.Overhead)
	h.Put(b)
	b, ok := s.ca.keys.Seal(append(b, body...), s.friend.eng.now)
	if !ok {
		s.t.Fatal("not sealed")
	}
	return b
}

// bodies are bodies of the packets that are sealed.
func (s *siege) bodies() map[proto.Type][]byte {
	bye := make([]byte, proto.GoodbyeSize)
	(&proto.Goodbye{CID: s.ca.cid}).Put(bye)
	probed := make([]byte, proto.ProbedSize)
	proto.PutProbed(probed, 1472)
	ready := make([]byte, proto.ReadySize)
	proto.PutReady(ready)
	return map[proto.Type][]byte{proto.Data: ready, proto.Ack: nil, proto.Probe: make([]byte, 20), proto.Probed: probed,
		proto.Close: bye, proto.Closed: nil}
}

// throw sends packets of the foe as they are.
func (s *siege) throw(packets ...[]byte) {
	for _, raw := range packets {
		s.sendRaw(raw)
		s.land()
	}
}

// sealedTypes returns the packets of sealed types, and the number of their types.
func sealedTypes(packets [][]byte) (some [][]byte, types int) {
	seen := map[proto.Type]bool{}
	for _, raw := range packets {
		if t := typeOf(raw); t.Established() || t == proto.Close || t == proto.Closed {
			some, seen[t] = append(some, raw), true
		}
	}
	return some, len(seen)
}

// quietly calls unmoved for the bystander's connection and checks that no packet was opened.
func (s *siege) quietly(what string, attack func(), conns ...*Conn) {
	s.t.Helper()
	before := s.victim.eng.Stats()
	s.unmoved(what, attack, append(conns, s.cb)...)
	st := s.victim.eng.Stats()
	if st.RxMessages != before.RxMessages || st.RxBytes != before.RxBytes || st.Duplicates != before.Duplicates ||
		st.ProtocolErrors != 0 || st.Forged != before.Forged || s.victim.recv.Len() != 0 {
		s.t.Errorf("%s: something was opened: %+v", what, st.Counters)
	}
}

// Attack 7: recorded packets are sent again, at once, and after more packets than the replay window has.
func TestAttack07SecureReplay(t *testing.T) {
	s := newSecureSiege(t)
	s.guise.tapped = true
	s.mixed(s.ca, s.cb, s.src, s.dst)
	s.run(50 * time.Millisecond)
	s.guise.tapped = false
	heard, types := sealedTypes(s.guise.heard)
	if types < 2 || len(heard) < 4 {
		t.Fatalf("%d packets of %d types", len(heard), types)
	}
	clear(s.dst.mem) // the consumer reuses the memory
	for _, what := range []string{"at once", "after a window"} {
		before := s.victim.eng.Stats()
		s.quietly(what, func() { s.throw(heard...) })
		if n := s.victim.eng.Stats().Replayed - before.Replayed; n != uint64(len(heard)) {
			t.Errorf("%s: %d of %d packets were refused as replayed", what, n, len(heard))
		}
		if !bytes.Equal(s.dst.mem, make([]byte, len(s.dst.mem))) {
			t.Errorf("%s: memory was written", what)
		}
		for end := s.ca.keys.Sealed() + seal.WindowSize; s.ca.keys.Sealed() < end; {
			s.work()
		}
		clear(s.dst.mem)
	}
	if s.out.packets != 0 {
		t.Errorf("%d packets were answered", s.out.packets)
	}
	s.finish()
}

// Attack 8: packets of a former connection between the same hosts, and of another one that lives, get the ID of the
// bystander's connection, with their own counters and with counters that are expected.
func TestAttack08SecureSplice(t *testing.T) {
	s := newSecureSiege(t)
	s.guise.as = nil // the foe's address, while the other connections are used
	old, _ := sealedTypes(s.life())
	ca, cb := s.pair(plain)
	s.guise.tapped, s.guise.heard = true, nil
	s.mixed(ca, cb, s.friend.memory(4096), s.victim.memory(4096))
	s.guise.tapped = false
	other, _ := sealedTypes(s.guise.heard)
	if len(old) < 6 || len(other) < 4 {
		t.Fatalf("%d and %d packets", len(old), len(other))
	}
	s.asFriend()
	s.run(50 * time.Millisecond) // time for the search for the path MTU
	for _, expected := range []bool{false, true} {
		before := s.victim.eng.Stats()
		packets := 0
		s.quietly("spliced packets", func() {
			for i, raw := range slices.Concat(old, other) {
				if raw = bytes.Clone(raw); expected {
					binary.BigEndian.PutUint32(raw[28:], uint32(s.ca.keys.Sealed())+uint32(i%100))
				}
				rename(raw, s.cb)
				s.throw(raw)
				packets++
			}
		}, cb)
		st := s.victim.eng.Stats()
		if got := st.Unopened + st.Replayed - before.Unopened - before.Replayed; got != uint64(packets) || expected && st.Replayed != before.Replayed {
			t.Errorf("%d of %d packets did not open", got, packets)
		}
	}
	s.drop(cb)
	s.run(time.Second)
	s.want(s.friend.connect, KindDisconnected)
	s.finish()
}

// Attack 9: each bit of packets of each type is changed. Afterwards the packets open as they were sealed.
func TestAttack09SecureBitFlips(t *testing.T) {
	s := newSecureSiege(t)
	for typ, body := range s.bodies() {
		raw := s.fresh(typ, body)
		s.quietly("a changed bit", func() {
			for i := range 8 * len(raw) {
				bad := bytes.Clone(raw)
				bad[i/8] ^= 1 << (i % 8)
				s.throw(bad)
			}
		})
		if typ == proto.Ack {
			heard := s.cb.lastHeard
			if s.throw(raw); s.cb.lastHeard == heard {
				t.Error("the unchanged packet does not open: the test tests nothing")
			}
		}
	}
	s.finish()
}

// Attack 10: packets of each type are cut, extended, joined and given the trailer of plaintext mode.
func TestAttack10SecureTruncated(t *testing.T) {
	s := newSecureSiege(t)
	for typ, body := range s.bodies() {
		raw := s.fresh(typ, body)
		next := s.fresh(typ, body)
		s.quietly("a packet of another length", func() {
			for n := 1; n < len(raw); n++ {
				s.throw(raw[:n], withCRC(raw[:n:n]))
			}
			for n := 1; n <= len(raw); n++ {
				s.throw(slices.Concat(raw, next[:n]))
			}
			s.throw(withCRC(raw), withCRC(raw[:len(raw)-seal.Overhead]), slices.Concat(raw[:len(raw)-seal.Overhead], next[len(next)-seal.Overhead:]))
		})
	}
	s.finish()
}

// Attack 13: the victim gets its own packets, with the connection ID that it expects. Both connection ends are tried.
func TestAttack13SecureReflection(t *testing.T) {
	s := newSecureSiege(t)
	s.guise.tapped = true
	s.mixed(s.ca, s.cb, s.src, s.dst)
	s.run(50 * time.Millisecond)
	s.guise.tapped = false
	said, types := sealedTypes(s.guise.said)
	if types < 2 || len(said) < 4 {
		t.Fatalf("%d packets of %d types", len(said), types)
	}
	s.quietly("reflections", func() {
		for i, raw := range said {
			s.throw(raw)
			raw = bytes.Clone(raw)
			rename(raw, s.cb)
			s.throw(raw)
			binary.BigEndian.PutUint32(raw[28:], uint32(s.ca.keys.Sealed())+uint32(i))
			s.throw(raw)
		}
	})
	s.finish()
}

// Attack 4: an attacker that reads the packets sends Reset, Close and Closed in plaintext form, with the right IDs, numbers
// and quoted counters. A Reset may start a challenge, but a connection whose peer answers does not end. A linger keeps
// its keys, and so the connection ID, when Closed comes in plaintext form.
func TestAttack04SecureForgedControl(t *testing.T) {
	s := newSecureSiege(t)
	bye := s.bodies()[proto.Close]
	plaintext := func(h proto.Header, body []byte) []byte {
		b := make([]byte, proto.HeaderSize)
		h.Put(b)
		return withCRC(append(b, body...))
	}
	s.quietly("control packets in plaintext form", func() {
		for _, tag := range []uint32{s.cb.tag, s.cb.peerTag, uint32(s.cb.keys.Sealed() - 1), uint32(s.ca.keys.Sealed())} {
			for _, typ := range []proto.Type{proto.Data, proto.Ack, proto.Close, proto.Closed} {
				h := s.header(s.cb, typ)
				h.Tag = tag
				s.throw(plaintext(h, bye), plaintext(h, nil))
			}
		}
	})
	for range 100 { // for longer than challengeAckLimit
		h := proto.Header{Type: proto.Reset, CID: s.cb.peerCID, PSN: s.cb.sent.Nxt, Tag: uint32(s.cb.keys.Sealed() - 1), Echo: s.victim.eng.now.Stamp()}
		s.sendRaw(plaintext(h, nil))
		s.run(50 * time.Millisecond)
	}
	if s.cb.State() != Established || s.ca.State() != Established {
		t.Fatalf("Resets ended the connection: states %d and %d", s.ca.State(), s.cb.State())
	}
	s.work()
	s.friend.down = true
	sealed := uint32(s.cb.keys.Sealed()) // the counter of Close
	if err := s.victim.eng.Disconnect(s.cb, false); err != nil {
		t.Fatal(err)
	}
	s.throw(plaintext(proto.Header{Type: proto.Closed, CID: s.cb.cid, Tag: s.cb.peerTag}, nil),
		plaintext(proto.Header{Type: proto.Closed, CID: s.cb.cid, Tag: sealed}, nil))
	if s.victim.eng.Connections() != 1 {
		t.Error("Closed in plaintext form ended a linger")
	}
	s.friend.down = false
	s.until("the end", time.Second, func() bool { return s.ca.State() == Closed && s.victim.eng.Connections() == 0 })
}

// An attacker that sends Resets cannot learn a reason from the answers: packets that do not open get none, whatever is
// wrong with them.
func TestAttack23SecureNoAnswer(t *testing.T) {
	s := newSecureSiege(t)
	raw := s.fresh(proto.Ack, nil)
	late := bytes.Clone(raw)
	late[1] ^= byte(proto.KeyPhase) // a phase without a key
	forged := bytes.Clone(raw)
	forged[40]++
	s.throw(raw)
	s.out = traffic{}
	s.quietly("packets that do not open", func() { s.throw(raw, late, forged, raw[:48], raw[:47]) })
	if s.out.packets != 0 {
		t.Errorf("%d answers", s.out.packets)
	}
	s.finish()
}

// TestSecureHints crashes a peer. A Reset of its next process, or an ICMP message, breaks the connection, but only after
// the peer was silent for challengeAckLimit, and before GiveUp.
func TestSecureHints(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := newSecureWorld(t, simlink.Config{Seed: 4, Delay: 10 * time.Microsecond, Refuse: true, RefuseSlowly: true}, Limits{}, usual, 2)
		ca, _ := w.pair(plain)
		w.run(10 * time.Millisecond)
		w.poll()
		w.crash(w.nodes[1])
		if restarts {
			w.reboot(1)
		}
		a, began := w.nodes[0], w.net.Now()
		src := a.memory(100)
		a.post(ca, ca.PostSend(src.seg(0, 100), 1, 0))
		a.post(ca, ca.PostWrite(src.seg(0, 100), 2, Remote{Key: 1, Addr: 1}, 0))
		w.until("the end", 30*time.Second, func() bool { return ca.State() == Closed })
		if took := time.Duration(w.net.Now() - began); took < challengeAckLimit || took > w.limits.GiveUp && took > 9*time.Second {
			t.Errorf("restart %v: the connection broke after %v", restarts, took)
		}
		w.want(a.connect, KindBroken)
	}
}

// Attack 14: packets that the peer has sealed come from another address. They are answered as packets of an unknown
// connection, and are still good from the peer's address.
func TestAttack14SecureOtherAddress(t *testing.T) {
	s := newSecureSiege(t)
	raw := s.fresh(proto.Ack, nil)
	s.guise.as = nil
	s.quietly("another address", func() { s.throw(raw) })
	if s.out.types[proto.Reset] != 1 || s.out.packets != 1 {
		t.Errorf("answers %v, want a Reset", s.out.types)
	}
	s.noGain()
	s.asFriend()
	heard := s.cb.lastHeard
	if s.throw(raw); s.cb.lastHeard == heard {
		t.Error("the packet does not open: the test tests nothing")
	}
	s.finish()
}

// Attack 5: a peer seals packets with numbers that it cannot have. They are refused after they are opened.
func TestAttack05SecureImplausibleNumbers(t *testing.T) {
	s := newSecureSiege(t)
	for _, edit := range []func(h *proto.Header){
		func(h *proto.Header) { h.PSN += proto.MaxWindow + 1 },
		func(h *proto.Header) { h.PSN += 1 << 31 },
		func(h *proto.Header) { h.Ack++ },
		func(h *proto.Header) { h.Ack += 1 << 31 },
	} {
		for typ, body := range s.bodies() {
			h := s.header(s.cb, typ)
			h.Ack = s.cb.sent.Nxt
			edit(&h)
			b := make([]byte, proto.HeaderSize, 200)
			h.Put(b)
			b, _ = s.ca.keys.Seal(append(b, body...), s.friend.eng.now)
			before := s.victim.eng.Stats().Forged
			s.unmoved("implausible numbers", func() { s.throw(b) }, s.cb)
			if s.victim.eng.Stats().Forged != before+1 {
				t.Errorf("type %d: not refused", typ)
			}
		}
	}
	s.finish()
}

// While the peer is silent, Resets that quote a packet from before the challenge do not break the connection. One that
// quotes a challenge ACK does.
func TestSecureHintQuotesChallenge(t *testing.T) {
	s := newSecureSiege(t)
	s.friend.down = true
	old := uint32(s.cb.keys.Sealed() - 1)
	reset := func(counter uint32) {
		h := proto.Header{Type: proto.Reset, CID: s.cb.peerCID, PSN: s.cb.sent.Nxt, Tag: counter, Echo: s.victim.eng.now.Stamp()}
		b := make([]byte, proto.HeaderSize)
		h.Put(b)
		s.throw(withCRC(b))
	}
	reset(uint32(s.cb.keys.Sealed())) // not sealed yet
	if s.cb.challenge.pending {
		t.Error("a Reset that quotes no packet started a challenge")
	}
	reset(old)
	began := s.cb.challenge.begunAt
	if !s.cb.challenge.pending {
		t.Fatal("no challenge")
	}
	for s.victim.eng.now.Sub(began) <= challengeAckLimit {
		newest := uint32(s.cb.keys.Sealed() - 1)
		reset(newest) // too soon
		s.run(100 * time.Millisecond)
	}
	reset(old)
	if s.cb.State() != Established {
		t.Fatal("the connection broke too early, or by an old packet")
	}
	reset(uint32(s.cb.keys.Sealed() - 1))
	if s.cb.State() != Closed {
		t.Fatalf("state %d, want Closed", s.cb.State())
	}
	s.want(s.victim.connect, KindBroken)
}
