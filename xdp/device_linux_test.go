package xdp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

func openDevice(t testing.TB, l *lab.Lab, side lab.Side, o Options) *Device {
	t.Helper()
	return openNamed(t, l, side, lab.Interface, o)
}

func openNamed(t testing.TB, l *lab.Lab, side lab.Side, name string, o Options) *Device {
	t.Helper()
	var d *Device
	onSide(t, l, side, func() (err error) {
		d, err = Open(name, o)
		return err
	})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// awaitNeighbour waits until the MAC address of a path's next hop is known.
func awaitNeighbour(t testing.TB, s *Socket, id link.Path) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, ok := s.paths.Get(id).hop.MAC(); ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the neighbour does not answer")
		}
	}
}

// awaitAnswer waits until a device can send answers to an address.
func awaitAnswer(t testing.TB, d *Device, to netip.Addr) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, ok := d.routes.Answer(d.sockets[0].at(d.local), netip.AddrPortFrom(to, DefaultPort), [6]byte{2}); ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v stays unknown", to)
		}
	}
}

func TestDevice(t *testing.T) {
	for _, tc := range []struct {
		name   string
		mtu    int
		queues int
		mode   Mode
		v6     bool
		want   Mode
	}{
		{name: "auto", mtu: 1500, queues: 1, mode: Auto, want: Copy},
		{name: "copy, v6", mtu: 1500, queues: 1, mode: Copy, v6: true, want: Copy},
		{name: "generic", mtu: 1500, queues: 1, mode: Generic, want: Generic},
		{name: "two queues", mtu: 1500, queues: 2, mode: Auto, want: Copy},
		{name: "jumbo", mtu: 9000, queues: 1, mode: Auto, want: Copy},
		{name: "jumbo, v6", mtu: 9000, queues: 1, mode: Auto, v6: true, want: Copy},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t, tc.mtu, tc.queues)
			var ends [2]*Device
			for _, side := range []lab.Side{lab.A, lab.B} {
				o := DefaultOptions()
				o.Mode = tc.mode
				if tc.v6 {
					o.Addr = side.Addr6()
				}
				ends[side] = openDevice(t, l, side, o)
				if got := ends[side].Mode(); got != tc.want || len(ends[side].Links()) != tc.queues {
					t.Fatalf("mode %s with %d links, want %s with %d", got, len(ends[side].Links()), tc.want, tc.queues)
				}
			}
			if got := ends[lab.A].sockets[0].Caps().NoGroups; got != (tc.want == Generic) {
				t.Errorf("the link takes no groups: %t", got)
			}
			exchange(t, ends[lab.A], ends[lab.B])
		})
	}
}

// exchange sends a packet of the largest size from a to b, on each queue. b answers with link.PathReply.
func exchange(t *testing.T, da, db *Device) {
	t.Helper()
	for q := range da.sockets {
		a := da.sockets[q]
		to, err := a.Resolve(db.sockets[0].Local(), 99)
		if err != nil {
			t.Fatal(err)
		}
		awaitNeighbour(t, a, to)
		awaitAnswer(t, db, a.Local().Addr())
		m := message(t, a, to, a.Caps().MaxPayload, 5)
		var want []byte
		for i := range m {
			want = append(want, m[i].Data...)
		}
		a.Send(m)
		b, in := firstOf(t, db)
		if src, want := b.Source(&in[0]), a.Local(); src.Addr() != want.Addr() || src.Port() == want.Port() {
			t.Errorf("source %v, want the address %v and a port for entropy", src, want.Addr())
		}
		if in[0].Path != link.PathReply {
			t.Errorf("path %d on a received packet", in[0].Path)
		}
		b.Send(in)
		a, in = firstOf(t, da)
		var got []byte
		for i := range in {
			got = append(got, in[i].Data...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back, of %d, and differ", len(got), len(want))
		}
		a.Free(in)
		settled(t, b)
		a.Release(to)
		before := a.Stats().TxDropped
		a.Send(message(t, a, to, 10, 0))
		if a.Stats().TxDropped != before+1 {
			t.Errorf("%+v: want the packet on a released path dropped", a.Stats())
		}
	}
	if c, err := db.Counters(); err != nil || c.Redirected == 0 {
		t.Errorf("counters %+v, %v", c, err)
	}
}

// firstOf waits for a packet on any queue of d.
func firstOf(t *testing.T, d *Device) (*Socket, []link.Buf) {
	t.Helper()
	bufs := make([]link.Buf, maxSegments)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for _, s := range d.sockets {
			if n := s.Recv(bufs); n > 0 {
				return s, bufs[:n]
			}
			s.Wait(time.Millisecond)
		}
	}
	t.Fatalf("nothing arrives: %+v", d.Stats())
	return nil, nil
}

// A packet that is sent before the neighbour is resolved is dropped and counted.
func TestUnknownNeighbour(t *testing.T) {
	l := newLab(t, 1500, 1)
	d := openDevice(t, l, lab.A, small())
	s := d.sockets[0]
	to, err := s.Resolve(netip.MustParseAddrPort("10.73.0.77:17473"), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Send(message(t, s, to, 10, 0))
	if st := s.Stats(); st.TxDropped != 1 || st.TxPackets != 0 {
		t.Errorf("%+v", st)
	}
	settled(t, s)
	for _, addr := range []string{"198.51.100.1:17473", "[2001:db8::1]:17473", "10.73.0.2:0"} {
		if _, err := s.Resolve(netip.MustParseAddrPort(addr), 0); !errors.Is(err, link.ErrUnreachable) {
			t.Errorf("%s: %v, want unreachable", addr, err)
		}
	}
}

// Packets to the device's own address are returned by the next Recv, like any other packets.
func TestLoop(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, 9000, 1)
		o := DefaultOptions()
		if v6 {
			o.Addr = lab.A.Addr6()
		}
		s := openDevice(t, l, lab.A, o).sockets[0]
		to, err := s.Resolve(s.Local(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if s.PathMTU(to) != s.Caps().MaxPayload {
			t.Errorf("path MTU %d", s.PathMTU(to))
		}
		for i, size := range []int{0, 100, 8000} {
			s.Send(message(t, s, to, size, uint32(i)))
			bufs := make([]link.Buf, maxSegments)
			s.Wait(-1)
			n := s.Recv(bufs)
			if n == 0 || s.Source(&bufs[0]).Addr() != s.Local().Addr() {
				t.Fatalf("%d Bufs from %v", n, s.Source(&bufs[0]))
			}
			s.Send(bufs[:n]) // the reply returns too
			if got := collect(t, s, 1); len(got[0]) != size {
				t.Errorf("%d bytes, want %d", len(got[0]), size)
			}
		}
		settled(t, s)
	}
}

// When a process is killed, its program is detached and its queues are free.
func TestKillLeavesNothing(t *testing.T) {
	if os.Getenv("DATXDP_TEST_HOLD") != "" {
		holdUntilKilled()
	}
	l := newLab(t, 1500, 1)
	onSide(t, l, lab.A, func() error {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestKillLeavesNothing$")
		cmd.Env = append(os.Environ(), "DATXDP_TEST_HOLD=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || line != "open\n" {
			return errors.Join(fmt.Errorf("the child says %q", line), err, cmd.Process.Kill(), cmd.Wait())
		}
		if programOn(t, lab.Interface) == 0 {
			t.Error("no program while the child lives")
		}
		if err := cmd.Process.Kill(); err != nil {
			return err
		}
		_ = cmd.Wait()
		for deadline := time.Now().Add(patience); programOn(t, lab.Interface) != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the program stays")
			}
		}
		d, err := Open(lab.Interface, small())
		if err != nil {
			return err
		}
		return d.Close()
	})
}

func holdUntilKilled() {
	if _, err := Open(lab.Interface, small()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	select {}
}

// The owner's calls do not allocate memory, even when packets are dropped.
func TestNoAllocation(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		p := newPair(t, pairOptions{mtu: 9000, v6: v6})
		a, b := p.ends[lab.A], p.ends[lab.B]
		to := p.path(t, lab.A)
		bufs, in := make([]link.Buf, 8), make([]link.Buf, 32)
		allocs := testing.AllocsPerRun(500, func() {
			n := a.Alloc(bufs)
			for i := range bufs[:n] {
				bufs[i].Data, bufs[i].Path, bufs[i].Flags = bufs[i].Data[:1000], to, link.More
			}
			bufs[0].Flags, bufs[1].Path, bufs[n-1].Flags = 0, to, 0
			a.Send(bufs[:n])
			n = a.Alloc(bufs[:2])
			bufs[0].Path, bufs[1].Path = ^link.Path(0), link.PathReply // both are dropped
			a.Send(bufs[:n])
			a.Free(bufs[:a.Alloc(bufs)])
			n = b.Recv(in)
			for i := range in[:n] {
				b.Source(&in[i])
			}
			b.Send(in[:n/2])
			b.Free(in[n/2 : n])
			a.Free(in[:a.Recv(in)])
			a.Wait(0)
			a.Wake()
		})
		if allocs != 0 {
			t.Errorf("v6=%v: %v allocations", v6, allocs)
		}
		if b.Stats().RxPackets == 0 {
			t.Error("nothing was received")
		}
	}
}

// A device uses the route that rules select for its address, as it does for a second NIC with a table of its own, or for
// the ports. Answers go to the source port of the packet, so a rule about the destination port is for one direction.
func TestRouteByRule(t *testing.T) {
	port := func(from, to uint16) func(netip.Addr) error {
		return func(own netip.Addr) error { return labtest.RouteByPort(lab.Interface, own.Is6(), from, to) }
	}
	source := func(own netip.Addr) error { return labtest.RouteBySource(lab.Interface, own) }
	for name, set := range map[string][2]func(own netip.Addr) error{
		"source":           {source, source},
		"source port":      {port(DefaultPort, 0), port(DefaultPort, 0)},
		"destination port": {port(0, DefaultPort), port(DefaultPort, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, own := range []func(lab.Side) netip.Addr{lab.Side.Addr4, lab.Side.Addr6} {
				exchangeByRule(t, own, set)
			}
		})
	}
}

func exchangeByRule(t *testing.T, own func(lab.Side) netip.Addr, set [2]func(netip.Addr) error) {
	t.Helper()
	l := newLab(t, 1500, 1)
	var ends [2]*Device
	for _, side := range []lab.Side{lab.A, lab.B} {
		o := small()
		o.Addr = own(side)
		onSide(t, l, side, func() error {
			linkLocal := netip.MustParsePrefix(fmt.Sprintf("fe80::%d/64", side+1)) // from which the kernel solicits neighbours
			return errors.Join(labtest.AddAddress(lab.Interface, linkLocal), set[side](o.Addr))
		})
		ends[side] = openDevice(t, l, side, o)
	}
	a, b := ends[lab.A], ends[lab.B]
	exchange(t, a, b)
	h, err := a.routes.Resolve(a.sockets[0].Local(), b.sockets[0].Local(), patience) // the kernel agrees with the route that the exchange used
	if err != nil {
		t.Fatal(err)
	}
	a.routes.Release(h)
	exchange(t, a, b)
}
