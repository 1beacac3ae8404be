package xdp

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

// stranger sends raw frames from the other end of a lab, and sees every frame that arrives there.
type stranger struct {
	t  *testing.T
	fd int
}

func newStranger(t *testing.T, l *lab.Lab, side lab.Side) *stranger {
	s := &stranger{t: t, fd: -1}
	onSide(t, l, side, func() error {
		ifi, err := net.InterfaceByName(lab.Interface)
		if err != nil {
			return err
		}
		const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in network byte order
		if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, all); err != nil {
			return err
		}
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
		return unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifi.Index})
	})
	t.Cleanup(func() { unix.Close(s.fd) })
	return s
}

func (s *stranger) send(frame []byte) {
	if _, err := unix.Write(s.fd, frame); err != nil && err != unix.EAGAIN && err != unix.ENOBUFS {
		s.t.Error(err)
	}
}

// arrived receives the UDP packets that have arrived for a MAC address, and returns their number.
func (s *stranger) arrived(mac []byte) (n int) {
	b := make([]byte, 2048)
	for {
		size, from, err := unix.Recvfrom(s.fd, b, 0)
		if err != nil {
			return n
		}
		if ll := from.(*unix.SockaddrLinklayer); ll.Pkttype != unix.PACKET_OUTGOING && size >= ethSize+v6Size && bytes.Equal(b[:6], mac) && isUDP(b[ethSize:]) {
			n++
		}
	}
}

// isUDP reports whether the bytes are an IP packet with UDP.
func isUDP(ip []byte) bool {
	return ip[0]>>4 == 4 && ip[v4Protocol] == protocolUDP || ip[0]>>4 == 6 && ip[v6Next] == protocolUDP
}

// claim returns a frame from a MAC address that claims to be from an IP address.
func claim(t *testing.T, mac []byte, src, dst netip.Addr) []byte {
	b := packetFor(t, src.String(), dst.String(), payloadOf(100))
	copy(b[ethDst:], lab.A.MAC())
	copy(b[ethSrc:], mac)
	return b
}

// answering makes a device send back every packet that it receives, until the test ends.
func answering(t *testing.T, d *Device) {
	var stop atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		bufs := make([]link.Buf, 64)
		for !stop.Load() {
			for _, s := range d.sockets {
				n := s.Recv(bufs)
				for i := range bufs[:n] {
					bufs[i].Path = link.PathReply
				}
				if n == 0 {
					s.Wait(time.Millisecond)
				} else {
					s.Send(bufs[:n])
				}
			}
		}
	})
	t.Cleanup(func() {
		stop.Store(true)
		all.Wait()
	})
}

// A device sends no answers to a host that forges IP source addresses. A flood from such a host makes the neighbour
// table grow only slowly. A new host is not in the neighbour table yet; during the flood the device still answers such
// a host within a second.
func TestAnswersOfInventedAddresses(t *testing.T) {
	for _, tc := range []struct {
		name     string
		addr     func(lab.Side) netip.Addr
		invented func(i int) netip.Addr
	}{
		{"v4, on the subnet", lab.Side.Addr4, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 73, 0, byte(3 + i%250)}) }},
		{"v4, no route", lab.Side.Addr4, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}) }},
		{"v6, on the subnet", lab.Side.Addr6, func(i int) netip.Addr {
			a := lab.B.Addr6().As16()
			a[12], a[13], a[14], a[15] = 1, 0, byte(i>>8), byte(i)
			return netip.AddrFrom16(a)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t, 1500, 1)
			o := DefaultOptions()
			o.Addr = tc.addr(lab.A)
			answering(t, openDevice(t, l, lab.A, o))
			s := newStranger(t, l, lab.B)
			newcomer := newcomerOn(t, l, tc.addr(lab.B), netip.AddrPortFrom(tc.addr(lab.A), o.Port))
			forged := []byte{2, 0x66, 0, 0, 0, 1}
			const claims = 4200
			start := time.Now()
			var answered time.Duration
			for i := range claims {
				s.send(claim(t, forged, tc.invented(i), tc.addr(lab.A)))
				if i == claims/2 {
					answered = newcomer.ask(func(j int) { s.send(claim(t, forged, tc.invented(claims+j), tc.addr(lab.A))) })
				}
			}
			t.Logf("answered after %v", answered)
			if answered > time.Second {
				t.Errorf("the newcomer was answered after %v", answered)
			}
			newcomer.ask(func(int) {}) // all earlier packets have been handled then
			if n := s.arrived(forged); n != 0 {
				t.Errorf("%d answers for addresses of others", n)
			}
			onSide(t, l, lab.A, func() error {
				n, err := labtest.CountNeighbours(lab.Interface)
				if most := 40 + int(time.Since(start)/(100*time.Millisecond)); n > most {
					t.Errorf("%d entries in the neighbour table after %v, want %d at most", n, time.Since(start), most)
				}
				return err
			})
		})
	}
}

// A new host is answered within a second during a flood of 5000 packets per second. Every packet of the flood has its
// own forged source: an unused IP address of the subnet and an unused MAC address. The new host repeats its packet
// until it gets an answer. Its pauses double, up to 100 ms, like those between the retransmissions of a connection
// request.
func TestNewcomerBesideInventedSources(t *testing.T) {
	for _, tc := range []struct {
		name     string
		addr     func(lab.Side) netip.Addr
		invented func(i int) netip.Addr
	}{
		{"v4", lab.Side.Addr4, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 73, 0, byte(3 + i%250)}) }},
		{"v6", lab.Side.Addr6, func(i int) netip.Addr {
			a := lab.B.Addr6().As16()
			a[12], a[13], a[14], a[15] = 1, byte(i>>16), byte(i>>8), byte(i)
			return netip.AddrFrom16(a)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t, 1500, 1)
			o := DefaultOptions()
			o.Addr = tc.addr(lab.A)
			answering(t, openDevice(t, l, lab.A, o))
			s := newStranger(t, l, lab.B)
			newcomer := newcomerOn(t, l, tc.addr(lab.B), netip.AddrPortFrom(tc.addr(lab.A), o.Port))
			start, sent := time.Now(), 0
			flood := func(until time.Time) {
				for ; time.Now().Before(until); time.Sleep(time.Millisecond) {
					for ; sent < int(time.Since(start).Seconds()*5000); sent++ {
						mac := []byte{2, 0x66, byte(sent), byte(sent >> 8), byte(sent >> 16), 1}
						s.send(claim(t, mac, tc.invented(sent), tc.addr(lab.A)))
					}
				}
			}
			flood(start.Add(2 * time.Second))
			pause := 5 * time.Millisecond
			took := newcomer.ask(func(int) {
				flood(time.Now().Add(pause))
				pause = min(2*pause, 100*time.Millisecond)
			})
			t.Logf("answered after %v beside %d claims", took, sent)
			if took > time.Second {
				t.Errorf("the newcomer was answered after %v", took)
			}
		})
	}
}

// newcomer is a kernel socket on a host that never sends an ARP request, because it already has the other side's MAC
// address. The other side therefore does not learn the newcomer's MAC address from an ARP request.
type newcomer struct {
	t    *testing.T
	conn *net.UDPConn
}

func newcomerOn(t *testing.T, l *lab.Lab, from netip.Addr, to netip.AddrPort) (n newcomer) {
	n.t = t
	onSide(t, l, lab.B, func() (err error) {
		if err := labtest.SetNeighbour(lab.Interface, to.Addr(), lab.A.MAC()); err != nil {
			return err
		}
		// Replies are sent to the link's own port.
		n.conn, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, to.Port())), net.UDPAddrFromAddrPort(to))
		return err
	})
	t.Cleanup(func() { n.conn.Close() })
	return n
}

// ask sends packets until a reply arrives, and returns the time that this took. It calls f before each packet.
func (n newcomer) ask(f func(i int)) time.Duration {
	n.t.Helper()
	b := make([]byte, 2048)
	want := payloadOf(50)
	for start, i := time.Now(), 0; time.Since(start) < patience; i++ {
		f(i)
		if _, err := n.conn.Write(want); err != nil {
			n.t.Fatal(err)
		}
		_ = n.conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if k, err := n.conn.Read(b); err == nil && slices.Equal(b[:k], want) {
			return time.Since(start)
		}
	}
	n.t.Fatal("no answer")
	return 0
}
