package lease

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"time"
)

// modes are the modes by number. The number 0 is not used.
var modes = [...]Mode{1: Shared, Direct}

func modeNumber(m Mode) uint8 {
	for n, known := range modes {
		if n > 0 && m == known {
			return uint8(n)
		}
	}
	return 0
}

func parseMode(n uint8) (Mode, error) {
	if n == 0 || int(n) >= len(modes) {
		return "", fmt.Errorf("%w: mode %d", errMalformed, n)
	}
	return modes[n], nil
}

// putText writes a text into a field, cut to its size.
func putText(field []byte, s string) { copy(field, s) }

// parseText reads a text that is padded with zeros.
func parseText(field []byte) (string, error) {
	text, padding, _ := bytes.Cut(field, []byte{0})
	if len(bytes.Trim(padding, "\x00")) > 0 {
		return "", fmt.Errorf("%w: bytes behind a text", errMalformed)
	}
	return string(text), nil
}

// putAddr returns the field of an address. It drops the zone, which is the interface of the lease.
func putAddr(a netip.Addr) (field [16]byte) {
	if a.IsValid() {
		field = a.As16()
	}
	return field
}

func parseAddr(field [16]byte) netip.Addr {
	if field == [16]byte{} {
		return netip.Addr{}
	}
	return netip.AddrFrom16(field).Unmap()
}

func (r *Request) body() *requestBody {
	b := &requestBody{Mode: modeNumber(r.Mode), Addr: putAddr(r.Addr), Frames: r.Frames, FrameSize: r.FrameSize, Memory: r.Memory,
		Rings: r.Rings, Engines: r.Engines, SourcePorts: r.Ports}
	putText(b.Interface[:], r.Interface)
	return b
}

func (b *requestBody) parse() (r Request, err error) {
	r = Request{Addr: parseAddr(b.Addr), Frames: b.Frames, FrameSize: b.FrameSize, Memory: b.Memory,
		Rings: b.Rings, Engines: b.Engines, Ports: b.SourcePorts}
	if r.Mode, err = parseMode(b.Mode); err != nil {
		return r, err
	}
	r.Interface, err = parseText(b.Interface[:])
	return r, err
}

// body returns the message of a grant. It has the first maxAddresses addresses.
func (g *Grant) body() *grantBody {
	b := &grantBody{Lease: g.ID, Ifindex: uint32(g.Ifindex), Mode: modeNumber(g.Mode), MTU: uint32(g.MTU), MAC: g.MAC,
		Addr: putAddr(g.Addr), Port: g.Port, FirstEngine: g.FirstEngine, Engines: g.Engines, Frames: g.Frames,
		FrameSize: g.FrameSize, Memory: g.Memory, Rings: g.Rings, Sockets: uint8(len(g.Sockets))}
	if g.MultiBuffer {
		b.MultiBuffer = 1
	}
	putText(b.Interface[:], g.Interface)
	putText(b.Attach[:], g.Attach)
	copy(b.SourcePorts[:], g.Ports)
	for i, p := range g.Addresses[:min(len(g.Addresses), maxAddresses)] {
		b.Addresses[i] = prefixBody{putAddr(p.Addr()), uint8(p.Bits())}
	}
	return b
}

// parse returns the grant without its files.
func (b *grantBody) parse() (g *Grant, err error) {
	g = &Grant{ID: b.Lease, Ifindex: int(b.Ifindex), MTU: int(b.MTU), MAC: b.MAC, Addr: parseAddr(b.Addr), Port: b.Port,
		FirstEngine: b.FirstEngine, Engines: b.Engines, Frames: b.Frames, FrameSize: b.FrameSize, Memory: b.Memory,
		Rings: b.Rings, MultiBuffer: b.MultiBuffer == 1}
	if g.ID == 0 || b.Ifindex > math.MaxInt32 || b.MTU > math.MaxInt32 || b.MultiBuffer > 1 || b.Sockets > maxSockets {
		return nil, fmt.Errorf("%w: a grant out of range", errMalformed)
	}
	if g.Mode, err = parseMode(b.Mode); err != nil {
		return nil, err
	}
	if g.Interface, err = parseText(b.Interface[:]); err != nil {
		return nil, err
	}
	if g.Attach, err = parseText(b.Attach[:]); err != nil {
		return nil, err
	}
	for _, port := range b.SourcePorts {
		if port != 0 {
			g.Ports = append(g.Ports, port)
		}
	}
	g.Addresses, err = parsePrefixes(b.Addresses[:])
	return g, err
}

func parsePrefixes(fields []prefixBody) (all []netip.Prefix, err error) {
	for _, f := range fields {
		a := parseAddr(f.Addr)
		if !a.IsValid() {
			continue
		}
		p := netip.PrefixFrom(a, int(f.Bits))
		if !p.IsValid() {
			return nil, fmt.Errorf("%w: prefix of %d bits", errMalformed, f.Bits)
		}
		all = append(all, p)
	}
	return all, nil
}

func (h *Held) body() (b heldBody) {
	b = heldBody{Lease: h.ID, Mode: modeNumber(h.Mode), UID: h.Holder.UID, GID: h.Holder.GID, PID: h.Holder.PID,
		Bytes: h.Bytes, Since: h.Since.Unix()}
	putText(b.Interface[:], h.Interface)
	return b
}

func (b *heldBody) parse() (h Held, err error) {
	h = Held{ID: b.Lease, Holder: Holder{b.UID, b.GID, b.PID}, Bytes: b.Bytes, Since: time.Unix(b.Since, 0)}
	if h.Mode, err = parseMode(b.Mode); err != nil {
		return h, err
	}
	h.Interface, err = parseText(b.Interface[:])
	return h, err
}
