package xdp

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

const patience = 5 * time.Second

// fixedHop is a neighbour with a fixed MAC address.
type fixedHop struct {
	mac     [6]byte
	unknown bool
	mtu     int
}

func (h *fixedHop) MAC() ([6]byte, bool) { return h.mac, !h.unknown }
func (h *fixedHop) Source() netip.Addr   { return netip.Addr{} }
func (h *fixedHop) Failures() uint32     { return 0 }
func (h *fixedHop) MTU() int             { return h.mtu }

// fixedRouter returns the same next hop for every destination.
type fixedRouter struct{ hop *fixedHop }

func (r fixedRouter) Resolve(_, _ netip.AddrPort) (hop, error) { return r.hop, nil }
func (r fixedRouter) InZone(string) bool                       { return true }
func (r fixedRouter) Local(_, _ netip.AddrPort) bool           { return false }
func (r fixedRouter) Known(_, _ netip.AddrPort) (hop, error)   { return r.hop, nil }
func (r fixedRouter) Release(hop)                              {}
func (r fixedRouter) Answer(_, _ netip.AddrPort, _ [6]byte) ([6]byte, bool) {
	return r.hop.MAC()
}

// pair is two sockets on the two ends of a veth. It is the smallest set-up that moves packets: the program redirects
// every packet to the socket, and the neighbour's MAC address is fixed.
type pair struct {
	lab  *lab.Lab
	ends [2]*Socket
}

type pairOptions struct {
	mtu     int
	v6      bool
	generic bool
	memory  memory
	edit    func(*Options)
}

func newPair(t testing.TB, po pairOptions) *pair {
	t.Helper()
	p := &pair{lab: newLab(t, po.mtu, 1)}
	for _, side := range []lab.Side{lab.A, lab.B} {
		p.ends[side] = p.open(t, side, po)
	}
	return p
}

func (p *pair) open(t testing.TB, side lab.Side, po pairOptions) (s *Socket) {
	t.Helper()
	err := p.lab.Do(side, func() error {
		var err error
		s, err = openOn(t, side, po)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openOn opens a socket on the veth in the calling thread's namespace, and redirects all packets to it.
func openOn(t testing.TB, side lab.Side, po pairOptions) (*Socket, error) {
	ifi, err := net.InterfaceByName(lab.Interface)
	if err != nil {
		return nil, err
	}
	o := DefaultOptions()
	if po.edit != nil {
		po.edit(&o)
	}
	addr := side.Addr4()
	if po.v6 {
		addr = side.Addr6()
	}
	peer := &fixedHop{mac: [6]byte(side.Peer().MAC()), mtu: ifi.MTU}
	h := host{
		mac: [6]byte(ifi.HardwareAddr), local: netip.AddrPortFrom(addr, o.Port), mtu: ifi.MTU,
		served: serving(netip.PrefixFrom(side.Addr4(), 24).String(), netip.PrefixFrom(side.Addr6(), 64).String()), router: fixedRouter{peer},
		memory: po.memory,
	}
	where := place{ifindex: ifi.Index, name: ifi.Name, mode: Copy}
	if po.generic {
		where.mode = Generic
	}
	program, err := attachProgram(t, po.generic)
	if err != nil {
		return nil, err
	}
	s, err := openSocket(where, h, &o)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, program.Put(0, s.fd)
}

// attachProgram attaches a program that redirects every packet to the socket of its queue.
func attachProgram(t testing.TB, generic bool) (*labtest.Program, error) {
	p, err := labtest.AttachProgram(lab.Interface, generic)
	if err == nil {
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return p, err
}

// path returns a path to the other end.
func (p *pair) path(t testing.TB, from lab.Side) link.Path {
	t.Helper()
	id, err := p.ends[from].Resolve(p.ends[from.Peer()].Local(), 7)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// message allocates a packet and returns its Bufs. The payload has size bytes and begins with the number n.
func message(t testing.TB, s *Socket, to link.Path, size int, n uint32) []link.Buf {
	t.Helper()
	per := s.Caps().FrameSize
	bufs := make([]link.Buf, max(1, (size+per-1)/per))
	deadline := time.Now().Add(patience)
	for got := 0; got < len(bufs); {
		if got += s.Alloc(bufs[got:]); time.Now().After(deadline) {
			t.Fatalf("no frame to send: %v", s.pool.count)
		}
	}
	for i := range bufs {
		bufs[i].Data = bufs[i].Data[:min(size, per)]
		size -= len(bufs[i].Data)
		for j := range bufs[i].Data {
			bufs[i].Data[j] = byte(n) + byte(i) + byte(j)
		}
		bufs[i].Flags = link.More
	}
	if len(bufs[0].Data) >= 4 {
		binary.BigEndian.PutUint32(bufs[0].Data, n)
	}
	bufs[0].Path, bufs[len(bufs)-1].Flags = to, 0
	return bufs
}

// collect receives n packets, returns their payloads and frees their frames.
func collect(t testing.TB, s *Socket, n int) [][]byte {
	t.Helper()
	var out [][]byte
	bufs := make([]link.Buf, 64)
	var packet bytes.Buffer
	for deadline := time.Now().Add(patience); len(out) < n; {
		got := s.Recv(bufs)
		for _, b := range bufs[:got] {
			packet.Write(b.Data)
			if b.Flags&link.More == 0 {
				out = append(out, bytes.Clone(packet.Bytes()))
				packet.Reset()
			}
		}
		s.Free(bufs[:got])
		if got == 0 {
			if time.Now().After(deadline) {
				t.Fatalf("%d packets of %d arrived: %+v", len(out), n, s.Stats())
			}
			s.Wait(10 * time.Millisecond)
		}
	}
	return out
}

// conserve checks that every frame is in exactly one place.
func conserve(t testing.TB, s *Socket) {
	t.Helper()
	var count [states]uint32
	for i := range s.pool.notes {
		count[s.pool.notes[i].state]++
	}
	if count != s.pool.count || int(count[isFree]) != len(s.pool.free) {
		t.Errorf("frames by note %v, by count %v, %d on the free list", count, s.pool.count, len(s.pool.free))
	}
}

// settled drives s until the kernel has completed all transmitted frames.
func settled(t testing.TB, s *Socket) {
	t.Helper()
	for deadline := time.Now().Add(patience); s.pool.inFlight() > 0; {
		s.drain()
		s.reap()
		if time.Now().After(deadline) {
			t.Fatalf("frames stay with the kernel: %v", s.pool.count)
		}
	}
	conserve(t, s)
}

// newLab makes a lab without sockets. Packets of this MTU may need several frames. If the kernel does not support such
// packets, newLab skips the test.
func newLab(t testing.TB, mtu, queues int) *lab.Lab {
	t.Helper()
	labtest.RequireXDP(t)
	if mtu+ethSize+vlanSize > defaultFrameSize-rxHeadRoom {
		labtest.RequireMultiBuffer(t)
	}
	l := labtest.New(t, lab.Options{MTU: mtu, Queues: queues})
	if err := l.SetOffloads(false); err != nil {
		t.Fatal(err)
	}
	return l
}

func onSide(t testing.TB, l *lab.Lab, side lab.Side, fn func() error) {
	t.Helper()
	if err := l.Do(side, fn); err != nil {
		t.Fatal(err)
	}
}

// serving returns the addresses of a device that has these prefixes.
func serving(own ...string) *servedAddrs {
	var have []netip.Prefix
	for _, s := range own {
		have = append(have, netip.MustParsePrefix(s))
	}
	all := &servedAddrs{}
	all.now.Store(newServed(have[0].Addr(), nil, have))
	return all
}
