package xdp

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/link"
)

// The peer's kernel reports a packet to a closed port by ICMP. Every socket of the device must get the report, with the
// first bytes of the packet, and a report must wake a socket that sleeps in the method Wait. The test covers both
// address families.
func TestRefusedPortIsReported(t *testing.T) {
	l := newLab(t, 0, 2)
	d := openDevice(t, l, lab.A, DefaultOptions())
	for _, addr := range []netip.Addr{lab.B.Addr4(), lab.B.Addr6()} {
		there := netip.AddrPortFrom(addr, 17473)
		first := d.Sockets()[0]
		path, err := first.Resolve(there, 99)
		if err != nil {
			t.Fatal(err)
		}
		if got := first.Destination(path); got != there {
			t.Errorf("Destination is %v, want %v", got, there)
		}
		packet := strings.Repeat("a packet that is quoted from its beginning ", 33)
		right := func(r *link.Report) bool {
			return r.To == there && string(r.Quoted()) == packet[:link.QuoteSize]
		}
		var to [4]link.Report
		for end := time.Now().Add(patience); ; { // first the neighbour must be resolved
			var b [1]link.Buf
			if first.Alloc(b[:]) == 1 {
				b[0].Data, b[0].Path = append(b[0].Data[:0], packet...), path
				first.Send(b[:])
			}
			first.Wait(20 * time.Millisecond)
			if n := first.Refused(to[:1]); n > 0 && right(&to[0]) { // the failure to resolve a neighbour may be reported too
				break
			}
			if time.Now().After(end) {
				t.Fatalf("no report of %v", there)
			}
		}
		second := d.Sockets()[1]
		for to[0] = (link.Report{}); !right(&to[0]); {
			if second.Refused(to[:1]) == 0 {
				second.Wait(-1) // until the report wakes it
			}
		}
	}
}

// The parser accepts only messages about packets that this device can have sent. It rejects messages about other ports
// and addresses, messages about other programs' packets, and truncated messages.
func TestParseRefused(t *testing.T) {
	v4 := []byte{0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 3, 3, 0, 0, 0, 0, 0, 0,
		0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 1, 0x44, 0x41, 0, 20, 0, 0}
	want4 := [2]string{"10.0.0.1:49153", "10.0.0.2:17473"}
	v6 := append([]byte{1, 4, 0, 0, 0, 0, 0, 0, 0x60, 0, 0, 0, 0, 20, 17, 64},
		append(append(net.ParseIP("fd00::1"), net.ParseIP("fd00::2")...), 0xc0, 1, 0x44, 0x41, 0, 20, 0, 0)...)
	want6 := [2]string{"[fd00::1]:49153", "[fd00::2]:17473"}
	for _, tt := range []struct {
		name  string
		b     []byte
		parse func([]byte, *link.Report) (from netip.AddrPort, ok bool)
		want  [2]string
	}{{"IPv4", v4, parseRefused4, want4}, {"IPv6", v6, parseRefused6, want6}} {
		var r link.Report
		from, ok := tt.parse(append(tt.b, "quote"...), &r)
		if !ok || from.String() != tt.want[0] || r.To.String() != tt.want[1] || string(r.Quoted()) != "quote" {
			t.Errorf("%s: from %v to %v, %q, %v", tt.name, from, r.To, r.Quoted(), ok)
		}
		if _, ok := tt.parse(tt.b, &r); !ok || len(r.Quoted()) != 0 {
			t.Errorf("%s: %q without a quote, %v", tt.name, r.Quoted(), ok)
		}
		for n := range tt.b {
			if _, ok := tt.parse(tt.b[:n], &r); ok {
				t.Errorf("%s: %d bytes are a report", tt.name, n)
			}
		}
	}
	for at, value := range map[int]byte{9: 17, 20: 11, 21: 4, 28: 0x65, 37: 6, 0: 0x4f} {
		b := append([]byte(nil), v4...)
		if b[at] = value; at == 0 {
			b = b[:40]
		}
		if _, ok := parseRefused4(b, new(link.Report)); ok {
			t.Errorf("byte %d is %d: taken for a report", at, value)
		}
	}
}

func FuzzParseRefused(f *testing.F) {
	f.Add(make([]byte, 64))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var r link.Report
		parseRefused4(b, &r)
		parseRefused6(b, &r)
	})
}

// A socket keeps a limited number of reports and drops the others. A flood of reports is read slowly.
func TestRefusalsAreBounded(t *testing.T) {
	var s Socket
	s.closed.Store(true)
	r := link.Report{To: netip.MustParseAddrPort("10.0.0.2:17473")}
	for range 3 * maxRefused {
		s.report(&r)
	}
	to := make([]link.Report, 5)
	got := 0
	for n := s.Refused(to); n > 0; n = s.Refused(to) {
		got += n
	}
	if got != maxRefused {
		t.Errorf("%d reports, want %d", got, maxRefused)
	}
}
