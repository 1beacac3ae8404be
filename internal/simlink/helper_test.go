package simlink

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/link"
)

var (
	addrA = netip.MustParseAddrPort("10.0.0.1:17473")
	addrB = netip.MustParseAddrPort("10.0.0.2:17473")
)

// pair is two links of one network and a path from a to b.
type pair struct {
	t    testing.TB
	net  *Net
	a, b *Link
	ab   link.Path
}

func newPair(t testing.TB, cfg Config) *pair {
	t.Helper()
	n := New(cfg)
	p := &pair{t: t, net: n, a: n.Link(addrA), b: n.Link(addrB)}
	var err error
	if p.ab, err = p.a.Resolve(addrB, 0); err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends a payload from a to b, split into frames of a.
func (p *pair) send(payload []byte) {
	p.t.Helper()
	size := p.a.Caps().FrameSize
	bufs := make([]link.Buf, max(1, ceil(len(payload), size)))
	if n := p.a.Alloc(bufs); n != len(bufs) {
		p.t.Fatalf("Alloc = %d, want %d", n, len(bufs))
	}
	for i := range bufs {
		n := copy(bufs[i].Data, payload)
		bufs[i].Data, payload = bufs[i].Data[:n], payload[n:]
		if len(payload) > 0 {
			bufs[i].Flags |= link.More
		}
	}
	bufs[0].Path = p.ab
	p.a.Send(bufs)
}

// receive receives every packet that waits at l, and frees its frames.
func receive(l *Link) []string {
	var got []string
	var packet []byte
	bufs := make([]link.Buf, max(16, l.Caps().Segments))
	for {
		n := l.Recv(bufs)
		if n == 0 {
			return got
		}
		for i := range bufs[:n] {
			packet = append(packet, bufs[i].Data...)
			if bufs[i].Flags&link.More == 0 {
				got, packet = append(got, string(packet)), packet[:0]
			}
		}
		l.Free(bufs[:n])
	}
}

// deliverAll advances virtual time until nothing is in flight.
func (n *Net) deliverAll() {
	for at, ok := n.Next(); ok; at, ok = n.Next() {
		n.Advance(at)
	}
}

func numbered(i int) string { return fmt.Sprintf("packet %04d", i) }

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}
