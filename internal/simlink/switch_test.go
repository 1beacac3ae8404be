package simlink

import (
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

// star is hosts around one switch. Packets have one byte of payload that identifies them, and a size on the wire.
type star struct {
	t     *testing.T
	net   *Net
	hosts []*Link
}

func starAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), 17473)
}

func newStar(t *testing.T, cfg Config, hosts ...Host) *star {
	s := &star{t: t, net: New(cfg)}
	for i, h := range hosts {
		s.hosts = append(s.hosts, s.net.LinkOf(starAddr(i), h))
	}
	return s
}

// send sends a packet with the given number of bytes on the wire.
func (s *star) send(from, to int, name byte, bytes int) {
	s.t.Helper()
	l := s.hosts[from]
	path, err := l.Resolve(starAddr(to), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer l.Release(path)
	var b [1]link.Buf
	if l.Alloc(b[:]) != 1 {
		s.t.Fatal("no frame")
	}
	b[0].Data, b[0].Path = b[0].Data[:bytes-wireOverhead], path
	b[0].Data[0] = name
	l.Send(b[:])
}

// arrival is a packet that has arrived: its name, when, and whether it is marked.
type arrival struct {
	name byte
	at   int64
	ce   bool
}

// arrivals runs until nothing is in flight.
func (s *star) arrivals(to int) (all []arrival) {
	var b [4]link.Buf
	for _, ok := s.net.Next(); ok; _, ok = s.net.Next() {
		l := s.net.Step()
		if l != s.hosts[to] {
			continue
		}
		n := l.Recv(b[:])
		for i := range b[:n] {
			all = append(all, arrival{b[i].Data[0], s.net.Now(), b[i].Flags&link.CE != 0})
		}
		l.Free(b[:n])
	}
	return all
}

func names(all []arrival) string {
	var s []byte
	for _, a := range all {
		s = append(s, a.name)
	}
	return string(s)
}

// At 8 Gb/s a byte takes a nanosecond.
const byteRate = 8e9

// A burst that waits at its sender must not occupy the port ahead of a packet that reaches the switch first.
func TestSwitchIsCausal(t *testing.T) {
	s := newStar(t, Config{Rate: byteRate, Delay: 1000, Switch: Switch{Buffer: 1e6}}, Host{}, Host{}, Host{})
	for i := range 4 {
		s.send(0, 2, 'a'+byte(i), 1000)
	}
	s.send(1, 2, 'x', 100)
	want := []arrival{{'x', 1200, false}, {'a', 3000, false}, {'b', 4000, false}, {'c', 5000, false}, {'d', 6000, false}}
	if got := s.arrivals(2); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSwitchDropsAndMarksByBytes(t *testing.T) {
	s := newStar(t, Config{Rate: byteRate, Switch: Switch{Buffer: 3000, Mark: 1000, Rate: byteRate / 10}}, Host{}, Host{}, Host{})
	s.send(0, 1, 'a', 1000)
	s.send(0, 1, 'b', 1000) // 900 bytes of a are left
	s.send(0, 1, 'c', 1000) // 1800 bytes wait
	s.send(0, 1, 'd', 1000) // 2700
	s.send(0, 1, 'e', 300)  // 2670
	s.send(0, 2, 'f', 1000) // another port
	want := []arrival{{'a', 11_000, false}, {'b', 21_000, false}, {'c', 31_000, true}, {'e', 34_000, true}}
	got := s.arrivals(1)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	st := s.net.Port(starAddr(1))
	if st.Packets != 4 || st.Bytes != 3300 || st.Drops != 1 || st.Marks != 2 || st.MaxQueue != 2970 {
		t.Errorf("%+v", st)
	}
	if other := s.net.Port(starAddr(2)); other.Packets != 1 || other.Drops+other.Marks != 0 || other.MaxQueue != 1000 {
		t.Errorf("the other port: %+v", other)
	}
	s.net.ResetPorts()
	if st := s.net.Port(starAddr(1)); st != (PortStats{}) {
		t.Errorf("after ResetPorts: %+v", st)
	}
}

// A queue that falls from 2000 bytes to 0 in half of the time has a mean of 500.
func TestMeanQueue(t *testing.T) {
	s := newStar(t, Config{Rate: 0, Switch: Switch{Buffer: 1e6, Rate: byteRate}}, Host{}, Host{})
	s.send(0, 1, 'a', 1000)
	s.send(0, 1, 'b', 1000)
	s.net.Advance(4000)
	if st := s.net.Port(starAddr(1)); math.Abs(st.MeanQueue-500) > 1 {
		t.Errorf("mean queue %v, want 500", st.MeanQueue)
	}
}

// With an alpha of 1 one port gets half of the shared memory, and two ports get a third each.
func TestSharedBuffer(t *testing.T) {
	cfg := Config{Rate: 0, Switch: Switch{Shared: 300_000, Alpha: 1, Rate: byteRate}}
	s := newStar(t, cfg, Host{}, Host{}, Host{})
	fill := func(ports ...int) {
		for range 400 {
			for _, p := range ports {
				s.send(0, p, 'a', 1000)
				s.net.Advance(s.net.Now())
			}
		}
	}
	fill(1)
	if got := s.net.Port(starAddr(1)).MaxQueue; got < 149_000 || got > 151_000 {
		t.Errorf("one port queues %d bytes", got)
	}
	s = newStar(t, cfg, Host{}, Host{}, Host{})
	fill(1, 2)
	for p := 1; p <= 2; p++ {
		if got := s.net.Port(starAddr(p)).MaxQueue; got < 99_000 || got > 101_000 {
			t.Errorf("port %d of two queues %d bytes", p, got)
		}
	}
}

func TestSharedPort(t *testing.T) {
	s := newStar(t, Config{Rate: byteRate, Switch: Switch{Buffer: 1e6}}, Host{}, Host{}, Host{}, Host{})
	s.net.SharePort(starAddr(2), starAddr(3))
	s.send(0, 2, 'a', 1000)
	s.send(1, 3, 'b', 1000)
	got := s.arrivals(3)
	if len(got) != 1 || got[0].at != 3000 {
		t.Errorf("got %v, want b at 3000", got)
	}
	if p := s.net.Port(starAddr(3)); p.Packets != 2 || p != s.net.Port(starAddr(2)) {
		t.Errorf("%+v", p)
	}
}

func TestHostsDiffer(t *testing.T) {
	s := newStar(t, Config{Rate: byteRate, Delay: 1000, Switch: Switch{Buffer: 1e6}}, Host{}, Host{Rate: byteRate / 10}, Host{MTU: 9000}, Host{MTU: 8000})
	if a, b := s.hosts[0].Caps(), s.hosts[2].Caps(); a.MaxPayload != 1472 || b.MaxPayload != 9000 || b.FrameSize != 9000 || b.Segments != 1 {
		t.Errorf("caps %+v %+v", a, b)
	}
	s.send(0, 1, 'a', 1000)
	if got := s.arrivals(1); len(got) != 1 || got[0].at != 1000+1000+10_000 {
		t.Errorf("to the slow host: %v", got)
	}
	s.send(2, 3, 'b', 9000)
	s.send(2, 3, 'c', 8000)
	s.send(2, 0, 'd', 1472+wireOverhead+1)
	if got := names(s.arrivals(3)); got != "c" {
		t.Errorf("the host with MTU 8000 received %q", got)
	}
	if got := s.hosts[0].Stats(); got.RxPackets+got.RxDropped+got.RxInvalid > 0 || s.hosts[0].rx.pending.Load() > 0 {
		t.Errorf("the host with MTU 1472 received a larger packet: %+v", got)
	}
}

// A path may change its delay, and packets on a shorter path overtake those on the longer one.
func TestReroute(t *testing.T) {
	for _, sw := range []Switch{{}, {Buffer: 1e6}} {
		s := newStar(t, Config{Rate: byteRate, Delay: 1000, Switch: sw}, Host{}, Host{}, Host{})
		s.net.SetDelay(starAddr(0), starAddr(1), 9*time.Microsecond)
		s.send(0, 1, 'a', 100)
		s.net.Advance(s.net.Now() + 4700) // both halves of the delay are known when a is in the switch
		s.net.SetDelay(starAddr(0), starAddr(1), time.Microsecond)
		s.send(0, 1, 'b', 100)
		if got := s.arrivals(1); names(got) != "ba" {
			t.Errorf("%+v: %v", sw, got)
		}
	}
}

func TestDown(t *testing.T) {
	for _, sw := range []Switch{{}, {Buffer: 1e6}} {
		s := newStar(t, Config{Rate: byteRate, Delay: 1000, Switch: sw}, Host{}, Host{}, Host{})
		for down := range 2 {
			s.send(0, 1, 'a', 100) // on its way when the cable is cut
			s.net.SetDown(starAddr(down), true)
			s.send(0, 1, 'b', 100)
			first := names(s.arrivals(1))
			s.net.SetDown(starAddr(down), false)
			s.send(0, 1, 'c', 100)
			later := names(s.arrivals(1))
			// Without a switch there is no point on the way where the sender's cable ends.
			if want := map[bool]string{true: "a"}[down == 0 && !sw.present()]; first != want || later != "c" {
				t.Errorf("%+v: host %d down: %q, then %q", sw, down, first, later)
			}
		}
	}
}

// The packets that are held come later by the given time, and the others come at their time.
func TestHold(t *testing.T) {
	hold := Hold{Share: 0.1, Min: 3 * time.Microsecond, Max: 30 * time.Microsecond}
	run := func(seed uint64) []arrival {
		s := newStar(t, Config{Seed: seed, Rate: byteRate, Delay: 1000, Hold: hold, Switch: Switch{Buffer: 1e6}}, Host{}, Host{})
		var all []arrival
		for range 50 {
			for i := range 20 {
				s.send(0, 1, byte(i), 1000)
			}
			start := s.net.Now()
			for _, a := range s.arrivals(1) {
				a.at -= start + int64(a.name)*1000
				all = append(all, a)
			}
		}
		return all
	}
	held := 0
	for _, a := range run(1) {
		switch late := a.at - 3000; {
		case late == 0:
		case late < 3000 || late > 30_000:
			t.Errorf("packet %d is late by %d ns", a.name, late)
		default:
			held++
		}
	}
	if held < 70 || held > 130 {
		t.Errorf("%d of 1000 packets were late", held)
	}
	if !slices.Equal(run(1), run(1)) || slices.Equal(run(1), run(2)) {
		t.Error("a seed does not determine the run")
	}
}

// A packet takes the time of its bits, to a fraction of a nanosecond.
func TestRateIsExact(t *testing.T) {
	s := newStar(t, Config{Rate: 25e9, Frames: 4096, Switch: Switch{Buffer: 1e8}}, Host{}, Host{})
	for range 1000 {
		s.send(0, 1, 'a', 1518)
	}
	all := s.arrivals(1)
	if got, want := all[999].at, int64(1001*1518*8/25); len(all) != 1000 || got != want {
		t.Errorf("%d packets until %d ns, want %d", len(all), got, want)
	}
}
