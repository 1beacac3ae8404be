package wire

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// typeOf returns the type of a packet.
func typeOf(raw []byte) proto.Type { return proto.Type(raw[0] & 15) }

// asFriend gives the foe's packets the source address of the friend.
func (s *siege) asFriend() {
	s.guise.as = func() netip.AddrPort { return s.friend.addr }
}

// replay sends recorded packets again. edit, if not nil, changes each of them first.
func (s *siege) replay(packets [][]byte, edit func(raw []byte)) {
	for _, raw := range packets {
		if edit != nil {
			edit(raw)
			end := len(raw) - proto.TrailerSize
			proto.PutTrailer(raw[end:], proto.CRC(0, raw[:end]))
		}
		s.sendRaw(raw)
		s.land()
	}
}

// mixed makes the friend execute one operation of each kind on a connection to the victim.
func (s *siege) mixed(ca, cb *Conn, here, there memory) {
	s.t.Helper()
	a, b := s.friend, s.victim
	b.postRecv(cb, there.seg(2048, 2048), 1)
	a.post(ca, ca.PostWrite(here.seg(0, 2048), 0, there.at(0), 0))
	a.post(ca, ca.PostSend(here.seg(2048, 2048), 0, 0))
	a.post(ca, ca.PostRead(here.seg(0, 2048), 0, there.at(0), 2048, 0))
	a.post(ca, ca.PostFetchAdd(1, here.seg(0, 8)[0], 0, there.at(0), 0))
	s.until("the operations", time.Second, func() bool { return a.request.Len() == 4 && b.recv.Len() == 1 })
	var c Completion
	for a.request.Pop(&c) || b.recv.Pop(&c) {
		if c.Status != StatusSuccess {
			s.t.Fatalf("%+v", c)
		}
	}
}

// Attack 7: an attacker on the path sends the packets of a connection again, at once or after more than a window of
// other packets. No send, write, read or atomic may execute twice, even if the consumer has changed the memory.
func TestAttack07Replay(t *testing.T) {
	s := newSiege(t)
	s.guise.tapped = true
	s.mixed(s.ca, s.cb, s.src, s.dst)
	s.guise.tapped = false
	clear(s.dst.mem) // the consumer reuses the memory
	untouched := func(what string) {
		t.Helper()
		for i, x := range s.dst.mem {
			if x != 0 {
				t.Fatalf("%s: byte %d was written", what, i)
			}
		}
		if n := s.victim.recv.Len(); n != 0 {
			t.Errorf("%s: %d messages", what, n)
		}
	}
	data := 0
	for _, raw := range s.guise.heard {
		if typeOf(raw) == proto.Data {
			data++
		}
	}
	before := s.victim.eng.Stats()
	s.asFriend()
	s.replay(s.guise.heard, nil)
	untouched("at once")
	st := s.victim.eng.Stats()
	if got := int(st.Duplicates - before.Duplicates); data < 4 || got != data {
		t.Errorf("%d of %d packets with data were duplicates", got, data)
	}
	for first := s.cb.recv.nextPSN; s.cb.recv.nextPSN.Sub(first) <= proto.MaxWindow+64; {
		s.work()
	}
	clear(s.dst.mem)
	before = s.victim.eng.Stats()
	s.unmoved("after a window", func() { s.replay(s.guise.heard, nil) }, s.cb)
	untouched("after a window")
	st = s.victim.eng.Stats()
	if got := int(st.Forged - before.Forged); got != len(s.guise.heard) {
		t.Errorf("%d of %d packets were refused", got, len(s.guise.heard))
	}
	s.noGain()
	s.finish()
}

// life records all packets that the victim receives during the life of another connection with the friend.
func (s *siege) life() (packets [][]byte) {
	s.t.Helper()
	s.guise.tapped = true
	ca, cb := s.friend.host.NewConn(plain), s.victim.host.NewConn(plain)
	s.dial(s.friend, s.victim, ca, nil)
	s.until("a request", time.Second, func() bool { return len(s.victim.arrived) > 0 })
	s.accept(s.victim, cb, nil)
	s.until("establishment", time.Second, func() bool { return ca.State() == Established })
	s.mixed(ca, cb, s.friend.memory(4096), s.victim.memory(4096))
	if err := s.friend.eng.Disconnect(ca, true); err != nil {
		s.t.Fatal(err)
	}
	s.until("the end", time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
	for s.victim.connect.Len() > 0 {
		s.victim.connect.Pop(new(Completion))
	}
	for s.friend.connect.Len() > 0 {
		s.friend.connect.Pop(new(Completion))
	}
	s.guise.tapped = false
	for _, raw := range s.guise.heard {
		if binary.BigEndian.Uint32(raw[4:]) != s.cb.cid { // not a packet of the bystander's connection
			packets = append(packets, raw)
		}
	}
	return packets
}

// rename gives a packet the ID and the numbers that the victim expects on a connection, but not the tag.
func rename(raw []byte, c *Conn) {
	binary.BigEndian.PutUint32(raw[4:], c.cid)
	binary.BigEndian.PutUint32(raw[8:], uint32(c.recv.nextPSN))
	binary.BigEndian.PutUint32(raw[12:], uint32(c.sent.Una))
}

// Attack 8: packets of a former connection are rewritten to the ID and the numbers of the next connection between the
// same hosts. The rewritten packets must be refused, because the next connection has other tags.
func TestAttack08ReplayAfterReconnect(t *testing.T) {
	s := newSiege(t)
	old := s.life()
	s.asFriend()
	before := s.victim.eng.Stats()
	seen := map[proto.Type]int{}
	s.unmoved("a former connection", func() {
		s.replay(old, func(raw []byte) {
			typ := typeOf(raw)
			if seen[typ]++; typ == proto.Connect {
				raw[0] = raw[0]&0xf0 | byte(proto.Data) // another test replays Connects
			}
			rename(raw, s.cb)
		})
	}, s.cb)
	if seen[proto.Data] < 4 || seen[proto.Close] == 0 || seen[proto.Connect] < 2 {
		t.Errorf("the packets are of types %v: the test tests nothing", seen)
	}
	st := s.victim.eng.Stats()
	if st.RxMessages != before.RxMessages || st.RxBytes != before.RxBytes || st.ProtocolErrors != 0 || s.victim.recv.Len() != 0 {
		t.Errorf("something was taken in: %+v", st)
	}
	s.finish()
}

// Attack 8: a Connect of a former attempt is replayed. While its cookie is valid, the Connect becomes a request again,
// but no connection may be established, because the requester no longer knows the attempt. After the cookie has
// expired, the Connect must get a Challenge and nothing else.
func TestAttack08ReplayedConnect(t *testing.T) {
	s := newSiege(t)
	var connects [][]byte
	for _, raw := range s.life() {
		if typeOf(raw) == proto.Connect {
			connects = append(connects, raw)
		}
	}
	s.asFriend()
	s.replay(connects, nil)
	if n := len(s.victim.arrived); n != 1 {
		t.Fatalf("%d requests by %d replays", n, len(connects))
	}
	cv := s.victim.host.NewConn(plain)
	s.accept(s.victim, cv, nil)
	s.until("the end of the attempt", s.victim.host.limits.GiveUp+time.Second, func() bool { return cv.State() == Closed })
	s.want(s.victim.connect, KindAcceptFailed)
	s.run(2 * cookieLife)
	s.drain()
	s.in, s.out = traffic{}, traffic{}
	s.unmoved("an old cookie", func() { s.replay(connects, nil) }, s.cb)
	if got := s.out.types[proto.Challenge]; got != len(connects) || len(s.victim.arrived) != 0 {
		t.Errorf("%d Challenges of %d packets, %d requests", got, len(connects), len(s.victim.arrived))
	}
	s.noGain()
	s.finish()
}

// Attack 8: a process restarts and gets packets from before the restart. The process must accept none of these packets,
// and no cookie in them, because it has new secrets.
func TestAttack08ReplayAfterRestart(t *testing.T) {
	s := newSiege(t)
	old := s.life()
	s.victim.eng.Close()
	h, err := NewHost(randReader{randSource(99)}, s.limits)
	if err != nil {
		t.Fatal(err)
	}
	if s.victim.eng, err = h.NewEngine(s.guise, Time(s.net.Now())); err == nil {
		err = h.Listen(service, s.victim)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.victim.host = h
	s.asFriend()
	s.replay(old, nil)
	s.drain()
	st := s.victim.eng.Stats()
	if n := s.victim.eng.Connections(); n != 0 || len(s.victim.arrived) != 0 || st.RxMessages != 0 || st.RxBytes != 0 {
		t.Errorf("%d connections, %d requests, %+v", n, len(s.victim.arrived), st)
	}
	for typ, n := range s.out.types {
		switch proto.Type(typ) {
		case proto.Challenge, proto.Reset, proto.Closed:
		default:
			if n != 0 {
				t.Errorf("%d answers of type %d", n, typ)
			}
		}
	}
	s.noGain()
}

// Attack 13: the victim's own packets return to the victim from the peer's address. The victim must not mistake them
// for packets of the peer, because each direction has its own tag.
func TestAttack13Reflection(t *testing.T) {
	s := newSiegeOn(t, simlink.Config{Frames: siegeFrames, Delay: time.Microsecond, Seed: 13})
	s.guise.tapped = true
	if err := s.friend.host.Listen(service, s.friend); err != nil {
		t.Fatal(err)
	}
	cv, ca := s.victim.host.NewConn(plain), s.friend.host.NewConn(plain)
	s.dial(s.victim, s.friend, cv, nil)
	s.until("a request", time.Second, func() bool { return len(s.friend.arrived) > 0 })
	s.accept(s.friend, ca, nil)
	s.until("establishment", time.Second, func() bool { return cv.State() == Established && ca.State() == Established })
	s.want(s.victim.connect, KindEstablished)
	s.want(s.friend.connect, KindEstablished)
	s.mixed(s.ca, s.cb, s.src, s.dst)
	s.mixed(ca, cv, s.src, s.dst)
	s.run(50 * time.Millisecond)
	s.guise.tapped = false
	seen := map[proto.Type]int{}
	for _, raw := range s.guise.said {
		seen[typeOf(raw)]++
	}
	if seen[proto.Connect] == 0 || seen[proto.Data] < 2 || seen[proto.Ack] == 0 || seen[proto.Probe]+seen[proto.Probed] == 0 {
		t.Errorf("the packets are of types %v: the test tests nothing", seen)
	}
	clear(s.dst.mem)
	s.asFriend()
	for _, own := range []bool{false, true} { // as they were sent, and with the ID and the numbers that the victim expects
		s.unmoved("reflections", func() {
			s.replay(s.guise.said, func(raw []byte) {
				if own && typeOf(raw).Established() {
					rename(raw, cv)
				}
			})
		}, s.cb, cv)
	}
	if len(s.victim.arrived) != 0 || s.victim.recv.Len() != 0 || s.victim.eng.Stats().ProtocolErrors != 0 {
		t.Errorf("%d requests, %d messages", len(s.victim.arrived), s.victim.recv.Len())
	}
	s.noGain()
	s.drop(cv)
	s.finish()
}
