package tap

import (
	"net/netip"

	"github.com/datxdp/datxdp/link"
)

var (
	_ link.Reporter   = (*Capture)(nil)
	_ link.Reporter   = (*Impaired)(nil)
	_ link.Originator = (*Capture)(nil)
	_ link.Originator = (*Impaired)(nil)
	_ link.Grouper    = (*Capture)(nil)
	_ link.Grouper    = (*Impaired)(nil)
	_ link.Shedder    = (*Capture)(nil)
	_ link.Shedder    = (*Impaired)(nil)
)

// Refused implements link.Reporter.
func (c *Capture) Refused(to []link.Report) int { return refused(c.Link, to) }

// Destination implements link.Reporter.
func (c *Capture) Destination(p link.Path) netip.AddrPort { return destination(c.Link, p) }

// Refused implements link.Reporter.
func (t *Impaired) Refused(to []link.Report) int { return refused(t.Link, to) }

// Destination implements link.Reporter.
func (t *Impaired) Destination(p link.Path) netip.AddrPort { return destination(t.Link, p) }

// Origin implements link.Originator.
func (c *Capture) Origin(p link.Path) netip.Addr { return origin(c.Link, p) }

// Origin implements link.Originator.
func (t *Impaired) Origin(p link.Path) netip.Addr { return origin(t.Link, p) }

// SendSingly implements link.Grouper.
func (c *Capture) SendSingly(p link.Path) { sendSingly(c.Link, p) }

// SendSingly implements link.Grouper.
func (t *Impaired) SendSingly(p link.Path) { sendSingly(t.Link, p) }

// Shed implements link.Shedder.
func (c *Capture) Shed(from netip.Addr, value, mask byte) { shed(c.Link, from, value, mask) }

// Shed implements link.Shedder.
func (t *Impaired) Shed(from netip.Addr, value, mask byte) { shed(t.Link, from, value, mask) }

// refused forwards the call to the link below, if that is a link.Reporter.
func refused(below link.Link, to []link.Report) int {
	if r, ok := below.(link.Reporter); ok {
		return r.Refused(to)
	}
	return 0
}

func destination(below link.Link, p link.Path) netip.AddrPort {
	if r, ok := below.(link.Reporter); ok {
		return r.Destination(p)
	}
	return netip.AddrPort{}
}

// origin forwards the call to the link below. A link that is no link.Originator has one address.
func origin(below link.Link, p link.Path) netip.Addr {
	if o, ok := below.(link.Originator); ok {
		return o.Origin(p)
	}
	return below.Local().Addr()
}

func sendSingly(below link.Link, p link.Path) {
	if g, ok := below.(link.Grouper); ok {
		g.SendSingly(p)
	}
}

func shed(below link.Link, from netip.Addr, value, mask byte) {
	if s, ok := below.(link.Shedder); ok {
		s.Shed(from, value, mask)
	}
}
