package udplink

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

// answering makes a link send back every packet that it receives, until the test ends.
func answering(t *testing.T, l *Link) {
	var stop atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		bufs := make([]link.Buf, 64)
		for !stop.Load() {
			n := l.Recv(bufs)
			for i := range bufs[:n] {
				bufs[i].Path = link.PathReply
			}
			l.Send(bufs[:n])
			if n == 0 {
				l.Wait(time.Millisecond)
			}
		}
	})
	t.Cleanup(func() {
		stop.Store(true)
		all.Wait()
	})
}

// forger sends UDP packets from end B to a link of end A, with source addresses that no host has.
type forger struct {
	t  *testing.T
	fd int
	to netip.AddrPort
}

func newForger(t *testing.T, l *lab.Lab, to netip.AddrPort) *forger {
	f := &forger{t: t, to: to}
	onSide(t, l, lab.B, func() error {
		ifi, err := net.InterfaceByName(lab.Interface)
		if err != nil {
			return err
		}
		if f.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return unix.Bind(f.fd, &unix.SockaddrLinklayer{Ifindex: ifi.Index})
	})
	t.Cleanup(func() { unix.Close(f.fd) })
	return f
}

func onSide(t *testing.T, l *lab.Lab, s lab.Side, f func() error) {
	t.Helper()
	if err := l.Do(s, f); err != nil {
		t.Fatal(err)
	}
}

// flood sends packets at a rate per second until done is closed, and returns the number of packets. invented returns
// the source address of packet i.
func (f *forger) flood(rate int, invented func(i int) netip.Addr, done <-chan struct{}) (sent int) {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		for due := int(time.Since(start).Seconds() * float64(rate)); sent < due; sent++ {
			from := netip.AddrPortFrom(invented(sent), f.to.Port())
			if _, err := unix.Write(f.fd, udpFrame(from, f.to, make([]byte, 100))); err != nil && err != unix.ENOBUFS {
				f.t.Error(err)
				return sent
			}
		}
		select {
		case <-done:
			return sent
		default:
		}
	}
}

// udpFrame returns an Ethernet frame from end B to end A.
func udpFrame(from, to netip.AddrPort, payload []byte) []byte {
	udp := binary.BigEndian.AppendUint16(nil, from.Port())
	udp = binary.BigEndian.AppendUint16(udp, to.Port())
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(payload)))
	udp = append(append(udp, 0, 0), payload...)
	addrs := append(from.Addr().AsSlice(), to.Addr().AsSlice()...)
	b := append(append([]byte{}, lab.A.MAC()...), lab.B.MAC()...)
	if from.Addr().Is4() {
		b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IP)
		ip := []byte{0x45, 0, byte((20 + len(udp)) >> 8), byte(20 + len(udp)), 0, 0, 0x40, 0, 64, unix.IPPROTO_UDP, 0, 0}
		ip = append(ip, addrs...)
		binary.BigEndian.PutUint16(ip[10:], checksum(ip))
		return append(append(b, ip...), udp...)
	}
	pseudo := append(append([]byte{}, addrs...), 0, 0, byte(len(udp)>>8), byte(len(udp)), 0, 0, 0, unix.IPPROTO_UDP)
	binary.BigEndian.PutUint16(udp[6:], checksum(append(pseudo, udp...)))
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IPV6)
	b = append(b, 0x60, 0, 0, 0, byte(len(udp)>>8), byte(len(udp)), unix.IPPROTO_UDP, 64)
	return append(append(b, addrs...), udp...)
}

// checksum returns the Internet checksum (RFC 1071) of an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum>>16 + sum)
}

// families has the addresses of a lab, and unused addresses of its subnet, for each family.
var families = []struct {
	name     string
	addr     func(lab.Side) netip.Addr
	newcomer netip.Addr // a second address of end B
	invented func(i int) netip.Addr
}{
	{"v4", lab.Side.Addr4, netip.MustParseAddr("10.73.0.254"), func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 73, 0, byte(3 + i%200)}) }},
	{"v6", lab.Side.Addr6, lab.B.Addr6().Next().Next(), func(i int) netip.Addr {
		a := lab.B.Addr6().As16()
		a[12], a[15] = 1, byte(i%200)
		return netip.AddrFrom16(a)
	}},
}

// The link answers a flood of 20000 packets per second from 200 unused addresses of the subnet. Meanwhile it answers a
// known peer and a new host within a second.
func TestInventedSourcesDoNotFillTheSendBuffer(t *testing.T) {
	for _, tc := range families {
		t.Run(tc.name, func(t *testing.T) {
			l := labtest.New(t, lab.Options{})
			const buffer = 212992 // the default for a process without privilege
			a := open(t, l, lab.A, tc.addr(lab.A), Options{Buffer: buffer})
			answering(t, a)
			peer := dialFrom(t, l, tc.addr(lab.B), a.Local())
			peer.ask()
			f := newForger(t, l, a.Local())
			var flood sync.WaitGroup
			done := make(chan struct{})
			flood.Go(func() { t.Log(f.flood(20000, tc.invented, done), "forged packets") })
			defer flood.Wait()
			defer close(done)
			var longest time.Duration
			for start := time.Now(); time.Since(start) < 2*time.Second; time.Sleep(time.Millisecond) {
				longest = max(longest, peer.ask())
			}
			t.Logf("the peer was answered after %v at most", longest)
			onSide(t, l, lab.B, func() error {
				return labtest.AddAddress(lab.Interface, netip.PrefixFrom(tc.newcomer, tc.newcomer.BitLen()))
			})
			newcomer := dialFrom(t, l, tc.newcomer, a.Local())
			// End B then resolves end A again with the newcomer's address, as a real new host would.
			onSide(t, l, lab.B, func() error { return labtest.ForgetNeighbour(lab.Interface, tc.addr(lab.A)) })
			took := newcomer.ask()
			t.Logf("the newcomer was answered after %v", took)
			if longest > 3*time.Second/2 || took > 3*time.Second/2 {
				t.Errorf("answers after %v and %v, want 1.5 s at most", longest, took)
			}
			if s := a.Stats(); s.TxDropped == 0 || s.TxFull != 0 {
				t.Errorf("%d packets dropped, %d for which the send buffer was full", s.TxDropped, s.TxFull)
			}
		})
	}
}

// 60 unused IP addresses send 8000 packets per second to the link, and the kernel has failed to resolve each of them. A
// new host is nevertheless answered within a second. It knows the MAC address of the link, so it sends no ARP request
// or solicitation from which the kernel could learn its own.
func TestNewcomerBesideInventedSources(t *testing.T) {
	for _, tc := range families {
		t.Run(tc.name, func(t *testing.T) {
			l := labtest.New(t, lab.Options{})
			a := open(t, l, lab.A, tc.addr(lab.A), Options{})
			answering(t, a)
			f := newForger(t, l, a.Local())
			onSide(t, l, lab.B, func() error { return labtest.SetNeighbour(lab.Interface, tc.addr(lab.A), lab.A.MAC()) })
			newcomer := dialFrom(t, l, tc.addr(lab.B), a.Local())
			const addrs = 60
			var flood sync.WaitGroup
			done := make(chan struct{})
			flood.Go(func() { f.flood(8000, func(i int) netip.Addr { return tc.invented(i % addrs) }, done) })
			defer flood.Wait()
			defer close(done)
			onSide(t, l, lab.A, func() (err error) {
				n := 0
				for deadline := time.Now().Add(20 * time.Second); n < addrs && err == nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
					n, err = labtest.CountNeighbours(lab.Interface)
				}
				return err
			})
			took := newcomer.ask()
			t.Logf("the newcomer was answered after %v", took)
			if took > time.Second {
				t.Errorf("the newcomer was answered after %v", took)
			}
		})
	}
}

// asker is a kernel socket.
type asker struct {
	t    *testing.T
	conn *net.UDPConn
}

func dialFrom(t *testing.T, l *lab.Lab, from netip.Addr, to netip.AddrPort) (p asker) {
	t.Helper()
	p.t = t
	onSide(t, l, lab.B, func() (err error) {
		local := net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		for range 100 { // an IPv6 address is tentative at first
			if p.conn, err = net.DialUDP("udp", local, net.UDPAddrFromAddrPort(to)); err == nil {
				return nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		return err
	})
	t.Cleanup(func() { p.conn.Close() })
	return p
}

// ask sends packets until a reply arrives, with pauses like those of a connection request. It returns the time that
// this took.
func (p asker) ask() time.Duration {
	p.t.Helper()
	var b [64]byte
	pause := 5 * time.Millisecond
	for start := time.Now(); time.Since(start) < 20*time.Second; pause = min(2*pause, 100*time.Millisecond) {
		if _, err := p.conn.Write([]byte("question")); err != nil {
			p.t.Fatal(err)
		}
		_ = p.conn.SetReadDeadline(time.Now().Add(pause))
		if _, err := p.conn.Read(b[:]); err == nil {
			return time.Since(start)
		}
	}
	p.t.Fatal("no answer")
	return 0
}

// Packets to 100 peers that do not answer ARP do not fill the send buffer, and the kernel still solicits these peers.
func TestAbsentPeersLeaveTheSendBuffer(t *testing.T) {
	for _, tc := range families {
		t.Run(tc.name, func(t *testing.T) {
			l := labtest.New(t, lab.Options{})
			const buffer = 1 << 20
			a := open(t, l, lab.A, tc.addr(lab.A), Options{Buffer: buffer})
			b := open(t, l, lab.B, tc.addr(lab.B), Options{})
			p := mustResolve(t, a, b.Local())
			bufs := make([]link.Buf, 64)
			send(t, a, p, "resolves the neighbour")
			b.Free(receive(t, b, bufs))
			reach := a.sock.(*batch).gate.reach
			for deadline := time.Now().Add(10 * time.Second); !reach.Known(b.Local()); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the peer's neighbour is not known")
				}
			}
			const peers, each = 100, 64
			for i := range peers {
				absent := mustResolve(t, a, netip.AddrPortFrom(tc.invented(i), DefaultPort))
				var data [each]string
				for j := range data {
					data[j] = string(make([]byte, 1400))
				}
				send(t, a, absent, data[:]...)
				send(t, a, p, "passes")
				b.Free(receive(t, b, bufs))
			}
			used, err := unix.IoctlGetUint32(a.sock.(*batch).fd, unix.SIOCOUTQ)
			if most := 2*buffer/4 + 100<<10; err != nil || int(used) > most || used == 0 {
				t.Errorf("%d bytes in the send buffer, want %d at most (%v)", used, most, err)
			}
			before := a.Stats()
			if before.TxFull != 0 || before.TxDropped == 0 {
				t.Errorf("%d packets dropped, %d for which the send buffer was full", before.TxDropped, before.TxFull)
			}
			time.Sleep(trickle)
			send(t, a, mustResolve(t, a, netip.AddrPortFrom(tc.invented(0), 1)), "asks")
			if after := a.Stats(); after.TxDropped != before.TxDropped {
				t.Error("no packet passes any more")
			}
		})
	}
}
