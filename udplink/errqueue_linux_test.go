package udplink

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

// A packet to a closed port ends Wait, and is then reported with its first bytes. The socket still receives and sends
// afterwards, and Wait sleeps again.
func TestRefusedPortIsReported(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "::1"} {
		t.Run(addr, func(t *testing.T) {
			at := netip.MustParseAddr(addr)
			a := mustOpen(t, at, Options{Port: freePort(t, at)})
			there := netip.AddrPortFrom(at, freePort(t, at))
			gone := mustResolve(t, a, there)
			if got := a.Destination(gone); got != there {
				t.Errorf("Destination is %v, want %v", got, there)
			}
			var to [4]link.Report
			rx := make([]link.Buf, 4)
			long := "the beginning of a packet that is quoted as far as a report has room "
			for _, packet := range []string{"knock", long, long + strings.Repeat("and longer than a message quotes ", 42)} {
				send(t, a, gone, packet)
				a.Wait(time.Minute)
				if n := a.Recv(rx); n != 0 {
					t.Errorf("%d packets from nobody", n)
				}
				want := packet[:min(len(packet), link.QuoteSize)]
				if n := a.Refused(to[:]); n != 1 || to[0].To != there || string(to[0].Quoted()) != want {
					t.Fatalf("%d reports, of %v, %q, want one of %v, %q", n, to[0].To, to[0].Quoted(), there, want)
				}
			}
			if n := a.Refused(to[:]); n != 0 {
				t.Errorf("%d reports without a packet", n)
			}
			start := time.Now()
			if a.Wait(20 * time.Millisecond); time.Since(start) < 10*time.Millisecond {
				t.Error("Wait does not sleep any more")
			}
			self := mustResolve(t, a, a.Local())
			for range 10 { // the error of each packet is returned by the next call
				send(t, a, gone, "knock")
				send(t, a, self, "knock")
			}
			got := 0
			for end := time.Now().Add(10 * time.Second); got < 10 && time.Now().Before(end); {
				n := a.Recv(rx)
				a.Free(rx[:n])
				got += n
			}
			if s := a.Stats(); got != 10 || s.TxDropped != 0 || s.TxPackets != 23 {
				t.Errorf("%d packets came of 10, %d sent, %d dropped", got, s.TxPackets, s.TxDropped)
			}
		})
	}
}

// A socket keeps a limited number of reports and drops the others.
func TestRefusalsAreBounded(t *testing.T) {
	var q errQueue
	for i := range 3 * maxRefused {
		q.report(netip.AddrPortFrom(netip.IPv6Loopback(), uint16(i)), link.RefusedPort, make([]byte, i))
	}
	to := make([]link.Report, 5)
	got := 0
	for n := q.take(to); n > 0; n = q.take(to) {
		for i := range to[:n] {
			if port := int(to[i].To.Port()); port != got || len(to[i].Quoted()) != min(got, link.QuoteSize) {
				t.Errorf("report %d is of port %d with %d bytes", got, port, len(to[i].Quoted()))
			}
			got++
		}
	}
	if got != maxRefused {
		t.Errorf("%d reports, want %d", got, maxRefused)
	}
}

func TestUnreachable(t *testing.T) {
	message := func(level, code int, data ...byte) []byte {
		b := make([]byte, unix.CmsgSpace(len(data)))
		b[0] = byte(unix.CmsgLen(len(data)))
		b[unix.SizeofCmsghdr-8], b[unix.SizeofCmsghdr-4] = byte(level), byte(code)
		copy(b[unix.CmsgLen(0):], data)
		return b
	}
	tos := message(unix.IPPROTO_IP, unix.IP_TOS, 3)
	for _, tt := range []struct {
		name string
		in   []byte
		why  link.Refusal
		want bool
	}{
		{"IPv4", message(unix.IPPROTO_IP, unix.IP_RECVERR, 111, 0, 0, 0, 2, 3, 3, 0), link.RefusedPort, true},
		{"IPv6", message(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 111, 0, 0, 0, 3, 1, 4, 0), link.RefusedPort, true},
		{"after another", append(tos, message(unix.IPPROTO_IP, unix.IP_RECVERR, 111, 0, 0, 0, 2, 3, 3, 0)...), link.RefusedPort, true},
		{"host unreachable", message(unix.IPPROTO_IP, unix.IP_RECVERR, 113, 0, 0, 0, 2, 3, 1, 0), link.RefusedHost, true},
		{"network unreachable", message(unix.IPPROTO_IP, unix.IP_RECVERR, 101, 0, 0, 0, 2, 3, 0, 0), link.RefusedNet, true},
		{"filtered", message(unix.IPPROTO_IP, unix.IP_RECVERR, 113, 0, 0, 0, 2, 3, 13, 0), link.RefusedHost, true},
		{"no route, IPv6", message(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 101, 0, 0, 0, 3, 1, 0, 0), link.RefusedNet, true},
		{"prohibited, IPv6", message(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 13, 0, 0, 0, 3, 1, 1, 0), link.RefusedPolicy, true},
		{"neighbour, IPv6", message(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 113, 0, 0, 0, 3, 1, 3, 0), link.RefusedHost, true},
		{"fragmentation needed", message(unix.IPPROTO_IP, unix.IP_RECVERR, 90, 0, 0, 0, 2, 3, 4, 0), 0, false},
		{"too long, ours", message(unix.IPPROTO_IP, unix.IP_RECVERR, 90, 0, 0, 0, 1, 0, 0, 0), 0, false},
		{"time exceeded", message(unix.IPPROTO_IP, unix.IP_RECVERR, 113, 0, 0, 0, 2, 11, 0, 0), 0, false},
		{"short", message(unix.IPPROTO_IP, unix.IP_RECVERR, 111, 0, 0, 0, 2, 3), 0, false},
		{"nothing", nil, 0, false},
	} {
		if why, got := unreachable(tt.in); got != tt.want || got && why != tt.why {
			t.Errorf("%s: %v, %v", tt.name, why, got)
		}
	}
}
