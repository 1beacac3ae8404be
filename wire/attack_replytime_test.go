package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// slowLink is the victim's link. A packet to an address of the foe takes the time cost within Send, because the receive
// path of a host runs there if it is on the same machine.
type slowLink struct {
	link.Link
	link.Reporter
	s         *siege
	cost      time.Duration
	addresses int // addresses of the foe: the first ones of the networks 10.0.0/24, 10.0.1/24 and so on
	perNet    int // addresses of the foe in each network
	received  int
	from      map[uint32]netip.AddrPort // the foe's address, by frame
	spent     time.Duration
}

// foeHosts is where the foe's addresses begin in a network.
const foeHosts = 50

// foe returns the i-th address of the foe.
func (l *slowLink) foe(i int) netip.AddrPort {
	i %= l.addresses
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i / l.perNet), byte(foeHosts + i%l.perNet)}), 17473)
}

func (l *slowLink) Recv(bufs []link.Buf) int {
	n := l.Link.Recv(bufs)
	for i := range bufs[:n] {
		delete(l.from, bufs[i].Frame)
		if l.Link.Source(&bufs[i]) == l.s.foe.addr {
			l.from[bufs[i].Frame] = l.foe(l.received)
			l.received++
		}
	}
	return n
}

func (l *slowLink) Source(b *link.Buf) netip.AddrPort {
	if from, ok := l.from[b.Frame]; ok {
		return from
	}
	return l.Link.Source(b)
}

func (l *slowLink) Send(bufs []link.Buf) {
	for i := range bufs {
		to := l.Destination(bufs[i].Path)
		if bufs[i].Path == link.PathReply {
			to = l.Source(&bufs[i])
		}
		if to.Addr().As4()[3] >= foeHosts {
			l.spent += l.cost
			l.s.net.Advance(l.s.net.Now() + int64(l.cost))
		}
	}
	l.Link.Send(bufs)
}

func newSlowSiege(t *testing.T, l *slowLink) *siege {
	s := newSiege(t)
	l.s, l.Link, l.Reporter, l.from = s, s.guise.Link, s.victim.link, make(map[uint32]netip.AddrPort)
	s.guise.Link = l
	s.victim.eng.replyTime.clock = func() Time { return Time(s.net.Now()) }
	return s
}

// Attack 22: packets to the foe take long, because its receive path runs within the victim's Send. The foe sends packets
// that the victim answers without a connection. The answers must take a bounded share of the victim's time, also within
// one Poll. A newcomer of another network must connect soon, and so must a neighbour of the foe.
func TestAttack22SlowReceivers(t *testing.T) {
	hello := func(s *siege, i, qual uint64, key *requestKey) {
		h := proto.Header{Type: proto.Connect, PSN: seq.Num(i)}
		hi := proto.Hello{CID: uint32(i), Tag: uint32(i), MTU: 1472, Window: minPeerWindow, Qual: qual}
		if key != nil {
			hi.Cookie = s.victim.eng.makeCookie(key, &h, &hi, s.net.Now()/int64(cookieLife))
		}
		var body [proto.HelloSize]byte
		hi.Put(body[:])
		s.send(&h, body[:])
	}
	challenge := func(s *siege, i uint64) { hello(s, i, service, nil) }
	reject := func(s *siege, i uint64) { hello(s, i, service+1, nil) }
	accept := func(s *siege, i uint64) {
		hello(s, i, service, &requestKey{from: s.guise.Link.(*slowLink).foe(0)})
	}
	reset := func(s *siege, i uint64) {
		s.send(&proto.Header{Type: proto.Data, CID: 0x00ffff00, PSN: seq.Num(i), Tag: 1}, nil)
	}
	const filter, rules = 300 * time.Microsecond, 10 * time.Millisecond
	for _, tc := range []struct {
		name      string
		send      func(s *siege, i uint64)
		perSecond int
		link      slowLink
		share     time.Duration // the answers may take 1/share of the time,
		tolerance time.Duration // and 1/share of this time at once, besides the last answer
	}{
		{"Challenges", challenge, 315, slowLink{cost: rules}, replyAddress, replyTolerance},
		{"Challenges, 5000 a second", challenge, 5000, slowLink{cost: filter}, replyAddress, replyTolerance},
		{"Rejects", reject, 315, slowLink{cost: rules}, replyAddress, replyTolerance},
		{"Resets", reset, 315, slowLink{cost: rules}, replyAddress, replyTolerance},
		{"Accepts", accept, 315, slowLink{cost: rules}, replyAddress, replyTolerance},
		{"three addresses", challenge, 945, slowLink{cost: rules, addresses: 3}, replyNetwork, replyNeighbour},
		{"200 addresses", challenge, 5000, slowLink{cost: filter, addresses: 200}, replyNetwork, replyNeighbour},
		{"200 networks", challenge, 5000, slowLink{cost: filter, addresses: 200, perNet: 1}, replyEngine, replyNeighbour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &tc.link
			l.addresses = max(l.addresses, 1)
			if l.perNet == 0 {
				l.perNet = l.addresses
			}
			s := newSlowSiege(t, l)
			near := s.addNode(netip.MustParseAddrPort("10.0.0.9:17473"))
			far := s.addNode(netip.MustParseAddrPort("172.16.0.1:17473"))
			start, sent, longest := s.net.Now(), 0, time.Duration(0)
			step := func() {
				due := 63 * (1 + int(time.Duration(s.net.Now()-start)*time.Duration(tc.perSecond)/(63*time.Second)))
				for n := 0; sent < due; n++ {
					if sent++; n < 63 {
						tc.send(s, uint64(sent))
					}
				}
				s.net.Advance(s.net.Now() + int64(50*time.Microsecond))
				before := l.spent
				s.poll()
				for len(s.victim.arrived) > 0 {
					s.accept(s.victim, s.victim.host.NewConn(plain), nil)
				}
				for s.victim.connect.Pop(new(Completion)) {
				}
				longest = max(longest, l.spent-before)
				s.drain()
			}
			for range 20 {
				for _, n := range []*node{far, near} {
					c := n.host.NewConn(plain)
					began := s.net.Now()
					s.dial(n, s.victim, c, nil)
					for c.State() != Established && s.net.Now() < began+int64(time.Second) {
						step()
					}
					if c.State() != Established {
						t.Errorf("%v: the newcomer did not connect within a second", n.addr)
					}
				}
				for began := s.net.Now(); s.net.Now() < began+int64(200*time.Millisecond); {
					step()
				}
			}
			elapsed := time.Duration(s.net.Now() - start)
			if most := (elapsed+tc.tolerance)/tc.share + replySample*l.cost*(1+elapsed/replyPause); l.spent > most {
				t.Errorf("%v for answers to the foe in %v, want %v at most", l.spent, elapsed, most)
			}
			if most := tc.tolerance/tc.share + replySample*l.cost; longest > most {
				t.Errorf("%v for answers to the foe at once, want %v at most", longest, most)
			}
			if s.victim.eng.stats.RepliesPaused == 0 {
				t.Error("every packet of the foe was answered: the test tests nothing")
			}
		})
	}
}

// A reply during which the process was stopped must pause replies to its address for replyPause at most.
func TestStopWithinReply(t *testing.T) {
	h, err := NewHost(randReader{randSource(1)}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r := newReplyTime(h)
	to, now := netip.MustParseAddr("192.0.2.1"), Time(time.Hour)
	r.charge(to, sample{took: time.Minute}, now)
	if r.allows(to, now.Add(replyPause/2)) {
		t.Error("a reply is allowed before the end of the pause")
	}
	if !r.allows(to, now.Add(replyPause)) {
		t.Error("no reply is allowed after the pause")
	}
}

// Attack 22: Connects with forged addresses while the victim is short of processor time, so that its thread loses the
// processor within a reply now and then. Neither the newcomers nor the address that the foe has forged are paused. A
// receiver that is slow each time is, also if each sample is doubtful.
func TestAttack22RepliesOfABusyHost(t *testing.T) {
	h, err := NewHost(randReader{randSource(1)}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	newcomer := netip.MustParseAddr("192.0.2.1")
	for _, tc := range []struct {
		name      string
		addresses int // forged
		slowOf    int // one of slowOf samples is slow
		paused    bool
	}{
		{"many addresses", 1 << 16, 1000, false}, {"one address", 1, 1000, false}, {"slow each time", 1, 1, true}, {"many, slow each time", 1 << 16, 1, true},
	} {
		r, now := newReplyTime(h), Time(time.Hour)
		paused, spent := 0, time.Duration(0)
		for i := range 20_000 { // in 2 s: the thread loses its processor ten times a second
			to := netip.AddrFrom4([4]byte{172, 16, byte(i % tc.addresses >> 8), byte(i % tc.addresses)})
			s := sample{took: 5 * time.Microsecond}
			if i%tc.slowOf == 0 {
				s = sample{took: 75 * time.Millisecond, doubtful: true}
			}
			now = now.Add(100 * time.Microsecond)
			if !r.allows(to, now) {
				paused++
				continue
			}
			r.charge(to, s, now)
			spent += s.took
		}
		if !r.allows(newcomer, now) {
			paused++
		}
		if (paused > 0) != tc.paused || tc.paused && spent > time.Minute {
			t.Errorf("%s: %d replies were paused, %v were spent", tc.name, paused, spent)
		}
	}
}
