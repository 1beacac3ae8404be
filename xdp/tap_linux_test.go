package xdp

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
)

// seen counts the frames with this text that a packet socket has received, in both directions.
func (s *stranger) seen(text []byte) (n int) {
	b := make([]byte, 2048)
	for {
		size, _, err := unix.Recvfrom(s.fd, b, 0)
		if err != nil {
			return n
		}
		if bytes.Contains(b[:size], text) {
			n++
		}
	}
}

// A packet socket, as tcpdump uses it, must see neither the packets that the program redirects nor the packets that
// leave over AF_XDP. The firewall must not see these packets either (docs/SECURITY.md). As a control, the test sends
// packets to another port: these must be seen.
func TestTapsSeeNothing(t *testing.T) {
	for _, mode := range []Mode{Copy, Generic} {
		t.Run(string(mode), func(t *testing.T) {
			l := newLab(t, 1500, 1)
			o := DefaultOptions()
			o.Mode = mode
			answering(t, openDevice(t, l, lab.A, o))
			tap := newStranger(t, l, lab.A)
			to := netip.AddrPortFrom(lab.A.Addr4(), o.Port)
			peer := newcomerOn(t, l, lab.B.Addr4(), to)
			for range 10 {
				peer.ask(func(int) {})
			}
			if n := tap.seen(payloadOf(50)); n != 0 {
				t.Errorf("a packet socket was given %d frames", n)
			}
			other := net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.Addr(), to.Port()+1))
			onSide(t, l, lab.B, func() error {
				c, err := net.DialUDP("udp", nil, other)
				if err != nil {
					return err
				}
				defer c.Close()
				_, err = c.Write(payloadOf(50))
				return err
			})
			for end := time.Now().Add(patience); tap.seen(payloadOf(50)) == 0; {
				if time.Now().After(end) {
					t.Fatal("a packet to another port was not seen either: the test tests nothing")
				}
				_, _ = unix.Poll([]unix.PollFd{{Fd: int32(tap.fd), Events: unix.POLLIN}}, 100) // a timeout is no failure: the deadline of the loop is
			}
		})
	}
}
