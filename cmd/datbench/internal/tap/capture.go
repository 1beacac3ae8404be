package tap

import (
	"net/netip"
	"sync"

	"github.com/datxdp/datxdp/link"
)

// Capture is a link that also writes every packet to a Pcap. It does not write packets on a released path, because
// their destination is unknown.
type Capture struct {
	link.Link
	pcap    *Pcap
	scratch []byte // only the owner uses it

	mu    sync.Mutex // guards paths
	paths map[link.Path]netip.AddrPort
}

// Tap wraps a link.
func (p *Pcap) Tap(below link.Link) *Capture {
	return &Capture{Link: below, pcap: p, paths: make(map[link.Path]netip.AddrPort)}
}

// Recv implements link.Link.
func (c *Capture) Recv(bufs []link.Buf) int {
	n := c.Link.Recv(bufs)
	for rest := bufs[:n]; len(rest) > 0; {
		k := packetLen(rest)
		c.pcap.write(&record{
			from: c.Source(&rest[0]), to: c.Local(), marked: rest[0].Flags&link.CE != 0,
			payload: c.join(rest[:k]),
		})
		rest = rest[k:]
	}
	return n
}

// Send implements link.Link.
func (c *Capture) Send(bufs []link.Buf) {
	for rest := bufs; len(rest) > 0; {
		k := packetLen(rest)
		if to := c.destination(&rest[0]); to.IsValid() {
			c.pcap.write(&record{from: c.Local(), to: to, sent: true, payload: c.join(rest[:k])})
		}
		rest = rest[k:]
	}
	c.Link.Send(bufs)
}

// destination returns the destination of a packet; not valid for a released path.
func (c *Capture) destination(b *link.Buf) netip.AddrPort {
	if b.Path == link.PathReply {
		to := c.Source(b)
		if b.Port != 0 {
			to = netip.AddrPortFrom(to.Addr(), b.Port)
		}
		return to
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paths[b.Path]
}

// join returns the payload of a packet as one slice.
func (c *Capture) join(pkt []link.Buf) []byte {
	if len(pkt) == 1 {
		return pkt[0].Data
	}
	c.scratch = c.scratch[:0]
	for i := range pkt {
		c.scratch = append(c.scratch, pkt[i].Data...)
	}
	return c.scratch
}

// Resolve implements link.Link.
func (c *Capture) Resolve(to netip.AddrPort, entropy uint16) (link.Path, error) {
	return c.ResolveFrom(netip.Addr{}, to, entropy)
}

// ResolveFrom implements link.Link.
func (c *Capture) ResolveFrom(from netip.Addr, to netip.AddrPort, entropy uint16) (link.Path, error) {
	p, err := c.Link.ResolveFrom(from, to, entropy) // without mu, which the owner needs: it may wait
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.paths[p] = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	}
	return p, err
}

// Release implements link.Link.
func (c *Capture) Release(p link.Path) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.paths, p)
	c.Link.Release(p)
}
