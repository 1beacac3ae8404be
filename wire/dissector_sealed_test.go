//go:build !race

package wire

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/google/go-cmp/cmp"
)

// sealedPacket returns a packet whose body and trailer nobody can read.
func sealedPacket(h proto.Header, body int) []byte {
	b := make([]byte, proto.HeaderSize, proto.HeaderSize+body+proto.SealSize)
	h.Put(b)
	return append(b, bytes.Repeat([]byte{0xa5}, body+proto.SealSize)...)
}

// After a Connect with the Noise handshake, the packets of that connection must be shown as sealed, and no others.
func TestDissectorSealed(t *testing.T) {
	const requester, server = 0x11, 0x22
	other := netip.MustParseAddrPort("10.0.0.1:40000") // another connection of the requester's host
	connect := func(from netip.AddrPort, cookie uint64, noise []byte) datagram {
		hi := proto.Hello{CID: requester, Tag: 2, Cookie: cookie, Noise: noise, Private: make([]byte, proto.SealSize)}
		return datagram{from: from, to: ends4[1], payload: pack(proto.Header{Type: proto.Connect}, helloOf(&hi))}
	}
	toServer := func(b []byte) datagram { return datagram{from: ends4[0], to: ends4[1], payload: b} }
	toRequester := func(b []byte) datagram { return datagram{from: ends4[1], to: ends4[0], payload: b} }
	of := func(typ proto.Type, cid uint32) proto.Header {
		return proto.Header{Type: typ, CID: cid, Tag: 0xfffffffe}
	}
	updated := of(proto.Data, server)
	updated.Flags = proto.KeyPhase | proto.HasSACK
	accept := proto.Noise{Form: proto.FormIK, Head: make([]byte, proto.PublicKeySize)}
	ik := noiseOption(proto.FormIK)

	var packets []datagram
	var want []string
	for _, tc := range []struct {
		packet datagram
		want   string // part of the Info column
	}{
		{toServer(pack(of(proto.Data, server), nil)), "DATA cid=0x00000022 psn=0 ack=0 len=0"},
		{connect(ends4[0], 0, nil), "CONNECT"},
		{connect(ends4[0], 0, ik), "CONNECT"}, // without a cookie it is no handshake
		{toServer(pack(of(proto.Data, server), nil)), "DATA cid=0x00000022 psn=0 ack=0 len=0"},
		{connect(ends4[0], 1, ik[:len(ik)-1]), "[malformed: Noise handshake of 84 bytes]"},
		{toServer(pack(of(proto.Data, server), nil)), "DATA cid=0x00000022 psn=0 ack=0 len=0"},
		{connect(ends4[0], 1, ik), "form=IK"},
		{toRequester(pack(of(proto.Accept, requester), helloOf(&proto.Hello{Cookie: 1, Noise: accept.Append(nil), Private: make([]byte, proto.MaxNoiseData)}))),
			"ACCEPT cid=0x00000011 psn=0 ack=0 from=0x00000000 form=IK key=00000000"},
		{toServer(sealedPacket(of(proto.Data, server), 4)), "DATA cid=0x00000022 psn=0 ack=0 phase=0 counter=4294967294 sealed=4"},
		{toServer(sealedPacket(updated, 100)), "DATA cid=0x00000022 psn=0 ack=0 phase=1 counter=4294967294 sealed=100"},
		{toRequester(sealedPacket(of(proto.Ack, requester), 0)), "ACK cid=0x00000011 psn=0 ack=0 phase=0 counter=4294967294 sealed=0"},
		{toRequester(sealedPacket(of(proto.Ack, requester), 0)[:proto.HeaderSize+proto.SealSize-1]), "counter=4294967294 [malformed: no room for the seal]"},
		{toRequester(sealedPacket(of(proto.Probe, requester), 1000)), "PROBE cid=0x00000011 psn=0 ack=0 phase=0 counter=4294967294 sealed=1000"},
		{toServer(sealedPacket(of(proto.Probed, server), 4)), "PROBED cid=0x00000022 psn=0 ack=0 phase=0 counter=4294967294 sealed=4"},
		{toServer(sealedPacket(of(proto.Close, server), proto.GoodbyeSize)), "CLOSE cid=0x00000022 psn=0 ack=0 phase=0 counter=4294967294 sealed=12"},
		{toRequester(sealedPacket(of(proto.Closed, requester), 0)), "CLOSED cid=0x00000011 psn=0 ack=0 phase=0 counter=4294967294 sealed=0"},
		{toRequester(pack(of(proto.Closed, requester), nil)), "CLOSED cid=0x00000011 psn=0 ack=0"}, // of a server that does not know it
		{toRequester(pack(of(proto.Reset, requester), nil)), "RESET cid=0x00000011 psn=0 ack=0"},
		{toRequester(pack(of(proto.Data, requester+1), nil)), "DATA cid=0x00000012 psn=0 ack=0 len=0"},
		{datagram{from: other, to: ends4[1], payload: pack(of(proto.Data, server), nil)}, "DATA cid=0x00000022 psn=0 ack=0 len=0"},
		{connect(ends4[0], 1, nil), "CONNECT"}, // a plaintext adapter has the same addresses and names now
		{toServer(pack(of(proto.Data, server), nil)), "DATA cid=0x00000022 psn=0 ack=0 len=0"},
		{toRequester(pack(of(proto.Ack, requester), nil)), "ACK cid=0x00000011 psn=0 ack=0"},
	} {
		packets = append(packets, tc.packet)
		want = append(want, tc.want)
	}
	compare(t, packets)
	for _, args := range [][]string{nil, {"-2"}} { // -2: a second pass, in which the dissector has seen all packets before
		got := summary(t, writeCapture(t, packets), args...)
		for i, line := range got {
			if ok := strings.Contains(line, want[i]); !ok || strings.HasPrefix(want[i], "DATA") && !strings.HasSuffix(line, want[i]) {
				t.Errorf("%v, packet %d: %q, want %q", args, i+1, line, want[i])
			}
		}
		if sealed := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.Contains(s, "counter=") }); len(sealed) != 8 {
			t.Errorf("%v: %d packets are sealed, want 8:\n%s", args, len(sealed), cmp.Diff(want, got))
		}
	}
}

// A sealed packet whose capture is cut short must be shown as far as the capture goes.
func TestDissectorOnCutSealedPacket(t *testing.T) {
	hi := proto.Hello{CID: 0x11, Tag: 2, Cookie: 1, Noise: noiseOption(proto.FormNNpsk0)}
	packets := datagrams(ends4, [][]byte{pack(proto.Header{Type: proto.Connect}, helloOf(&hi))})
	b := sealedPacket(proto.Header{Type: proto.Data, CID: 0x22, Tag: 7}, 20)
	for cut := range len(b) - proto.HeaderSize + 1 {
		packets = append(packets, datagram{from: ends4[0], to: ends4[1], payload: b, cut: cut})
	}
	for i, p := range dissect(t, packets)[1:] {
		got, have := p.items(), len(b)-i
		if !slices.Contains(got, item{"counter", 28, 4, "7"}) || slices.Contains(got, item{Name: "cut"}) != (i > 0) {
			t.Errorf("%d bytes of %d: %v", have, len(b), got)
		}
		for _, f := range []item{{Name: "sealed", Pos: proto.HeaderSize, Size: 20}, {Name: "seal", Pos: proto.HeaderSize + 20, Size: proto.SealSize}} {
			f.Size = min(f.Size, have-f.Pos)
			if f.Size <= 0 {
				continue
			}
			f.Value = strings.Repeat("a5", f.Size)
			if !slices.Contains(got, f) {
				t.Errorf("%d bytes of %d: no %+v in %v", have, len(b), f, got)
			}
		}
	}
}
