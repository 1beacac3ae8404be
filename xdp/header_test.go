package xdp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/datxdp/datxdp/link"
)

// packetFor returns a packet whose headers a path has written, as a received frame contains it.
func packetFor(t testing.TB, src, dst string, payload []byte) []byte {
	t.Helper()
	p, err := newPath([6]byte{2, 0, 0, 0, 0, 1}, netip.AddrPortFrom(netip.MustParseAddr(src), 49152), netip.AddrPortFrom(netip.MustParseAddr(dst), DefaultPort), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, p.size, p.size+len(payload))
	p.writeHeaders(b, len(payload))
	if p.v6() {
		seal(b[ethSize:], []link.Buf{{Data: payload}})
	}
	return append(b, payload...)
}

// resum corrects the IPv4 header checksum after a change. The packet must not have a VLAN tag.
func resum(packet []byte) {
	h := packet[ethSize : ethSize+v4Size]
	be.PutUint16(h[v4Sum:], 0)
	be.PutUint16(h[v4Sum:], ^fold(sum(h, 0)))
}

func TestHeaders(t *testing.T) {
	payload := []byte("seventeen bytes..")
	v4 := packetFor(t, "10.0.0.1", "10.0.0.2", payload)
	if fold(sum(v4[ethSize:ethSize+v4Size], 0)) != 0xffff {
		t.Errorf("IPv4 checksum of % x", v4[ethSize:ethSize+v4Size])
	}
	if v4[ethSize+v4TOS] != ecnCapable || v4[ethSize+v4Fragment] != dontFragment || v4[ethSize+v4TTL] != 64 {
		t.Errorf("IPv4 header % x", v4[ethSize:ethSize+v4Size])
	}
	v6 := packetFor(t, "fd00::1", "fd00::2", payload)
	ip := v6[ethSize:]
	if got := fold(sum(ip[v6Src:], uint64(be.Uint16(ip[v6Length:]))+protocolUDP)); got != 0xffff {
		t.Errorf("IPv6 UDP checksum: sum %#x", got)
	}
	for _, b := range [][]byte{v4, v6} {
		l, ok := parse(b, len(b))
		if !ok || l.size != len(payload) || string(b[l.payload:]) != string(payload) || l.ce {
			t.Errorf("parse % x: %+v, %v", b, l, ok)
		}
	}
}

// The checksum over several pieces equals the checksum over the whole packet, even if a piece has an odd length.
func TestSealOverPieces(t *testing.T) {
	payload := make([]byte, 101)
	for i := range payload {
		payload[i] = byte(i * 37)
	}
	whole := packetFor(t, "fd00::1", "fd00::2", payload)
	want := be.Uint16(whole[ethSize+v6Size+udpSum:])
	for _, cut := range [][2]int{{1, 2}, {33, 34}, {32, 65}, {50, 51}, {7, 100}} {
		h := append([]byte(nil), whole[ethSize:headers6]...)
		be.PutUint16(h[v6Size+udpSum:], 0)
		seal(h, []link.Buf{{Data: payload[:cut[0]]}, {Data: payload[cut[0]:cut[1]]}, {Data: payload[cut[1]:]}})
		if got := be.Uint16(h[v6Size+udpSum:]); got != want {
			t.Errorf("cut at %v: checksum %#x, want %#x", cut, got, want)
		}
	}
}

func TestParseRejects(t *testing.T) {
	good := packetFor(t, "10.0.0.1", "10.0.0.2", make([]byte, 100))
	good6 := packetFor(t, "fd00::1", "fd00::2", make([]byte, 100))
	edit := func(b []byte, at int, v byte) []byte {
		b = append([]byte(nil), b...)
		b[at] = v
		if len(b) >= headers4 {
			resum(b) // for IPv6 this changes a byte of the source address, which parse does not read
		}
		return b
	}
	for name, b := range map[string][]byte{"v4": edit(good, ethSize+v4TOS, 0), "v6": edit(good6, ethSize+v6Src, 0xfc)} {
		if _, ok := parse(b, len(b)); !ok {
			t.Fatalf("%s: a good packet is refused", name)
		}
	}
	wrongSum := slices.Clone(good)
	wrongSum[ethSize+v4Sum]++
	for name, b := range map[string][]byte{
		"empty":                nil,
		"Ethernet only":        good[:14],
		"cut in UDP":           good[:41],
		"broadcast source":     edit(good, ethSrc, 0xff),
		"v6 multicast source":  edit(good6, ethSrc, 0x33),
		"another ether type":   edit(good, ethType+1, 6),
		"version 5":            edit(good, ethSize, 0x55),
		"header of 16 bytes":   edit(good, ethSize, 0x44),
		"header past the end":  edit(good[:50], ethSize, 0x4f),
		"total length too big": edit(good, ethSize+v4Length, 0xff),
		"fragment":             edit(good, ethSize+v4Fragment, 0x20),
		"fragment offset":      edit(good, ethSize+v4Fragment+1, 1),
		"TCP":                  edit(good, ethSize+v4Protocol, 6),
		"UDP length 7":         edit(edit(good, 38, 0), 39, 7),
		"UDP length too big":   edit(good, 38, 1),
		"TTL 0":                edit(good, ethSize+v4TTL, 0),
		"header checksum":      wrongSum,
		"VLAN 5":               tagged(good, 5),
		"v6 in VLAN 4095":      tagged(good6, 4095),
		"two tags":             tagged(tagged(good, 0), 0),
		"v6 hop limit 0":       edit(good6, ethSize+v6Hops, 0),
		"v6 next header":       edit(good6, ethSize+v6Next, 44),
		"v6 length too big":    edit(good6, ethSize+v6Length, 1),
		"v6 cut":               good6[:60],
		"VLAN, nothing behind": edit(edit(good, ethType, 0x81), ethType+1, 0)[:42],
	} {
		if l, ok := parse(b, len(b)); ok {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// The fast check of an IPv4 header checksum agrees with the general one.
func TestSoundHeaders(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	h := make([]byte, v4Size+4)
	for i := range 100_000 {
		for j := range h {
			h[j] = byte(r.Uint32()) | byte(-(i & 1)) // every second header has all bits set
		}
		b := h[:v4Size+i%3/2*4]
		if i%2 == 0 {
			be.PutUint16(b[v4Sum:], 0)
			be.PutUint16(b[v4Sum:], ^fold(sum(b, 0)))
		}
		if i%5 == 0 {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		if got, want := sound4(b), fold(sum(b, 0)) == 0xffff; got != want {
			t.Fatalf("% x: %v, want %v", b, got, want)
		}
	}
}

func TestParseTrimsAndMarks(t *testing.T) {
	b := append(packetFor(t, "10.0.0.1", "10.0.0.2", []byte("x")), make([]byte, 17)...) // padding to the minimum of 60 bytes
	b[ethSize+v4TOS] = ecnCE
	resum(b)
	l, ok := parse(b, len(b))
	if !ok || l.size != 1 || !l.ce {
		t.Errorf("%+v, %v", l, ok)
	}
	tagged := append(append(append([]byte(nil), b[:12]...), 0x81, 0, 0xe0, 0), b[12:]...)
	l, ok = parse(tagged, len(tagged))
	if !ok || l.size != 1 || l.payload != headers4+vlanSize {
		t.Errorf("with a VLAN tag: %+v, %v", l, ok)
	}
	b6 := packetFor(t, "fd00::1", "fd00::2", []byte("x"))
	b6[ethSize+1] |= ecnCE << 4
	if l, ok := parse(b6, len(b6)); !ok || !l.ce || !l.v6 {
		t.Errorf("IPv6: %+v, %v", l, ok)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(packetFor(f, "10.0.0.1", "10.0.0.2", []byte("x")), 0)
	f.Add(packetFor(f, "fd00::1", "fd00::2", make([]byte, 50)), 4000)
	f.Fuzz(func(t *testing.T, b []byte, more int) {
		total := len(b) + max(0, more%100000)
		l, ok := parse(b, total)
		if ok && (l.payload > len(b) || l.size < 0 || l.payload+l.size > total) {
			t.Fatalf("%+v of %d bytes in %d", l, total, len(b))
		}
	})
}

// tagged returns the packet with an 802.1Q tag.
func tagged(packet []byte, tci uint16) []byte {
	return slices.Insert(slices.Clone(packet), ethType, 0x81, 0, byte(tci>>8), byte(tci))
}
