//go:build !race

package wire

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/google/go-cmp/cmp"
)

// compare compares what tshark shows of every packet with what the codec reads.
func compare(t *testing.T, packets []datagram) {
	t.Helper()
	bad, all := 0, make(conversations)
	for i, p := range dissect(t, packets) {
		want, got := all.read(packets[i]), p.items()
		if slices.Equal(want, got) {
			continue
		}
		b := packets[i].payload
		t.Errorf("packet %d, % x of %d bytes: codec (-), tshark (+):\n%s", i+1, b[:min(len(b), 100)], len(b), cmp.Diff(want, got))
		if bad++; bad == 3 {
			t.Fatal("and so on")
		}
	}
}

// Wireshark must show every packet of a real conversation, and rare packets, as the codec reads them.
func TestDissectorAgainstCodec(t *testing.T) {
	for name, ends := range map[string][2]netip.AddrPort{"IPv4": ends4, "IPv6": ends6} {
		t.Run(name, func(t *testing.T) {
			packets := recordEngines(t, ends)
			seen := map[string]bool{}
			for _, p := range packets {
				for _, i := range read(p.payload) {
					seen[i.Name+" "+i.Value] = true
				}
			}
			for _, want := range []string{"type 1", "type 2", "type 3", "type 4", "type 5", "type 6", "type 7", "type 8", "type 9",
				"type 10", "type 11", "flags.source_port 0", "chunk.op 1", "chunk.op 2", "chunk.op 3", "chunk.op 4", "chunk.op 5", "chunk.op 6",
				"chunk.op 7", "chunk.op 8", "chunk.op 9", "chunk.flags.compare 1",
				"flags.has_sack 1", "flags.epoch 1", "flags.epoch_seen 1", "flags.no_credit 1", "flags.not_ready 1",
				"chunk.flags.last 0", "chunk.flags.solicited 1", "goodbye.reason 5", "hello.reason 2",
				"probed.size 3000"} {
				if !seen[want] {
					t.Errorf("no packet of the engines has %s", want)
				}
			}
			compare(t, append(packets, datagrams(ends, rarePackets())...))
		})
	}
}

// mutate damages a packet. In half of the cases it corrects the checksum afterwards.
func mutate(r *rand.Rand, p []byte) []byte {
	b := slices.Clone(p)
	head := min(len(b), proto.HeaderSize+proto.HelloSize)
	for range 1 + r.IntN(3) {
		switch r.IntN(8) {
		case 0:
			b = b[:r.IntN(len(b)+1)]
		case 1:
			b = append(b, byte(r.Uint32()), byte(r.Uint32()))
		case 2:
			b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
		case 3: // damage the lengths and the options of a Hello
			at := proto.HeaderSize + 48 + r.IntN(10)
			b[min(at, len(b)-1)] = byte(r.IntN(8))
		default: // damage lengths and types of chunks
			b[r.IntN(min(head, len(b)))] = byte(r.IntN(12))
		}
		if len(b) == 0 {
			return b
		}
	}
	if len(b) > proto.TrailerSize && r.IntN(2) == 0 {
		b = withCRC(b[:len(b)-proto.TrailerSize])
	}
	return b
}

// No packet may make the dissector fail. It must find a packet malformed if the codec does.
func TestDissectorOnDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	samples := rarePackets()
	for _, p := range recordEngines(t, ends4) {
		if len(p.payload) < 400 {
			samples = append(samples, p.payload)
		}
	}
	var damaged [][]byte
	for range 800 {
		damaged = append(damaged, mutate(r, samples[r.IntN(len(samples))]))
	}
	tooLong := proto.Hello{Private: make([]byte, proto.MaxPrivateData+1)}
	long := make([]byte, tooLong.Size())
	tooLong.Put(long)
	damaged = append(damaged, pack(proto.Header{Type: proto.Connect}, long), pack(proto.Header{Type: proto.Data}, []byte{1, 1, 0, 1, 0}),
		pack(proto.Header{Type: proto.Data}, append([]byte{4, 1, 0, 1}, make([]byte, 21)...)))
	for _, p := range rarePackets()[:8] {
		for n := range len(p) {
			damaged = append(damaged, p[:n])
		}
	}
	compare(t, datagrams(ends4, damaged))
}

// A packet whose capture is cut short must be shown as far as the capture goes.
func TestDissectorOnCutCapture(t *testing.T) {
	var packets []datagram
	for _, p := range rarePackets() {
		for cut := 0; cut < len(p); cut += 1 + len(p)/20 {
			packets = append(packets, datagram{from: ends4[0], to: ends4[1], payload: p, cut: cut})
		}
	}
	for i, p := range dissect(t, packets) {
		whole, got := read(packets[i].payload), p.items()
		captured := len(packets[i].payload) - packets[i].cut
		cut := slices.Contains(got, item{Name: "cut"})
		if cut != (packets[i].cut > 0) {
			t.Errorf("packet %d, %d bytes of %d: cut is %v", i+1, captured, len(packets[i].payload), cut)
		}
		for _, f := range whole { // all fields within the capture must be shown
			switch f.Name {
			case "chunk", "hello", "hello.option", "hello.option.value", "goodbye", "sack", "body", "chunk.payload", "hello.private",
				"probe.padding", "malformed", "ended", "crc.good":
				continue
			}
			if f.Pos+f.Size <= captured && !slices.Contains(got, f) && !strings.HasPrefix(f.Name, "chunk.") {
				t.Errorf("packet %d, %d bytes of %d: no %+v", i+1, captured, len(packets[i].payload), f)
			}
		}
	}
}

// The names of types, operations and reasons must be those of docs/WIRE.md.
func TestDissectorNames(t *testing.T) {
	var packets [][]byte
	for i := range 16 {
		b := pack(proto.Header{Type: proto.Type(i)}, nil)
		if new(proto.Header).Parse(b) {
			packets = append(packets, b)
		}
	}
	packets = append(packets, rarePackets()...)
	chunk := make([]byte, proto.MaxChunkSize)
	for op := range 256 {
		if n := proto.ChunkSize(byte(op)); n > 0 {
			chunk[0] = byte(op)
			packets = append(packets, pack(proto.Header{Type: proto.Data}, chunk[:n]))
		}
	}
	shown := map[string]bool{}
	var collect func(fs []pdmlField)
	collect = func(fs []pdmlField) {
		for i := range fs {
			_, name, _ := strings.Cut(fs[i].ShowName, ": ")
			shown[fs[i].Name+" "+name] = true
			collect(fs[i].Fields)
		}
	}
	for _, p := range dissect(t, datagrams(ends4, packets)) {
		collect(p.Protos)
	}
	for _, tab := range []struct{ heading, header, fields string }{
		{"## Packet", "| type | | body |", "type"},
		{"### Chunks", "| op | | after the first 4 bytes | payload |", "chunk.op"},
		{"### Goodbye", "| reason | | initiator's status of the operation that failed |", "hello.reason goodbye.reason"},
	} {
		for _, row := range documentTable(t, tab.heading, tab.header) {
			for _, f := range strings.Fields(tab.fields) {
				if want := fmt.Sprintf("datxdp.%s %s (%s)", f, row[1], row[0]); !shown[want] {
					t.Errorf("tshark never shows %q", want)
				}
			}
		}
	}
}

func TestDissectorInfo(t *testing.T) {
	header := proto.Header{Type: proto.Data, CID: 0xdeadbeef, PSN: 7, Ack: 1<<32 - 1}
	of := func(t proto.Type) proto.Header { h := header; h.Type = t; return h }
	write := make([]byte, proto.WriteSize+8)
	proto.PutWrite(write, proto.Last, 8, 1, 2)
	send := make([]byte, proto.SendSize)
	proto.PutSend(send, proto.Last, 0, 1, 0)
	hello := make([]byte, proto.HelloSize)
	(&proto.Hello{CID: 3, Qual: 0xa, Reason: proto.ReasonNoListener}).Put(hello)
	named := proto.Hello{CID: 3, Qual: 0xa, UDPPort: 4000}
	port := make([]byte, named.Size())
	named.Put(port)
	other := pack(header, write)
	other[0] = 1<<4 | byte(proto.Data)
	spoken := pack(of(proto.Versions), []byte{proto.Version, 3})
	spoken[0] = 1<<4 | byte(proto.Versions)
	bye := make([]byte, proto.GoodbyeSize)
	(&proto.Goodbye{CID: 3, Reason: proto.ReasonAccess}).Put(bye)
	held := of(proto.Ack)
	held.Flags = proto.HasSACK
	damaged := pack(header, write)
	damaged[len(damaged)-1] ^= 1
	const name = " cid=0xdeadbeef psn=7 ack=4294967295 "
	var packets [][]byte
	var want []string
	for _, tc := range []struct {
		packet []byte
		want   string
	}{
		{pack(header, write), "WRITE" + name + "len=8"},
		{pack(header, slices.Concat(write, write, send)), "WRITE*2 SEND" + name + "len=16"},
		{pack(held, append([]byte{5}, make([]byte, proto.MaxSACKSize-1)...)), "ACK" + name + "sack=2"},
		{pack(held, []byte{5, 0, 0, 0x80}), "ACK" + name + "sack=3"},
		{pack(held, []byte{5, 0}), "ACK" + name + "[malformed: SACK block of 2 bytes]"},
		{pack(of(proto.Connect), hello), "CONNECT" + name + "from=0x00000003 qual=0x000000000000000a"},
		{pack(of(proto.Connect), port), "CONNECT" + name + "from=0x00000003 qual=0x000000000000000a udp_port=4000"},
		{pack(of(proto.Connect), withOptions(1, 3, 0, 7, 7)), "CONNECT" + name + "from=0x00000001 qual=0x0000000000000000 [malformed: UDP port of 3 bytes]"},
		{pack(of(proto.Connect), helloOf(&proto.Hello{CID: 3, UDPPort: 4000, Noise: noiseOption(proto.FormIK), Private: make([]byte, proto.MaxNoiseData)})),
			"CONNECT" + name + "from=0x00000003 qual=0x0000000000000000 udp_port=4000 form=IK key=01020304"},
		{pack(of(proto.Accept), helloOf(&proto.Hello{Noise: noiseOption(proto.FormIK)})), "ACCEPT" + name + "from=0x00000000 form=IK key=01020304 [malformed: Noise handshake of 85 bytes]"},
		{pack(of(proto.Connect), withOptions(append([]byte{0x81, 37, 3}, noiseOption(proto.FormNNpsk0)[1:]...)...)),
			"CONNECT" + name + "from=0x00000001 qual=0x0000000000000000 form=3 key=01020304 [malformed: unknown form 3]"},
		{pack(of(proto.Reject), helloOf(&proto.Hello{Reason: proto.ReasonSecure, Private: make([]byte, proto.MaxPrivateData+1)})),
			"REJECT" + name + "from=0x00000000 (Reject: secure mode required) [malformed: too much private data]"},
		{other, "version 1, not dissected"},
		{spoken, "VERSIONS" + name + "spoken=2,3 [bad CRC32C]"},
		{pack(of(proto.Reject), hello), "REJECT" + name + "from=0x00000003 (Reject: nobody listens)"},
		{pack(of(proto.Close), bye), "CLOSE" + name + "from=0x00000003 (wrong remote key, range, right or zone)"},
		{pack(of(proto.Closed), nil), "CLOSED" + name},
		{pack(of(proto.Probe), make([]byte, 100)), "PROBE" + name + "size=136"},
		{pack(of(proto.Probed), []byte{0, 0, 5, 0xc0}), "PROBED" + name + "size=1472"},
		{pack(of(proto.Probed), nil), "PROBED" + name + "[malformed: Probed of another size]"},
		{damaged, "WRITE" + name + "len=8 [bad CRC32C]"},
		{pack(header, write[:20]), "WRITE" + name + "[malformed: payload beyond the body] len=0"},
		{pack(of(15), nil), "TYPE 15" + name + "[malformed: unknown type]"},
		{[]byte{1, 2, 3}, "[malformed: shorter than header and trailer]"},
	} {
		packets = append(packets, tc.packet)
		want = append(want, "datxdp: "+strings.TrimSpace(tc.want))
	}
	if got := summary(t, writeCapture(t, datagrams(ends4, packets))); !slices.Equal(got, want) {
		t.Errorf("got (+), want (-):\n%s", cmp.Diff(want, got))
	}
}

func TestDissectorPort(t *testing.T) {
	ends := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("10.0.0.2:5555")}
	packets := datagrams(ends, [][]byte{pack(proto.Header{Type: proto.Ack}, nil)})
	packets = append(packets, datagrams(ends4, [][]byte{pack(proto.Header{Type: proto.Ack}, nil)})...)
	for _, tc := range []struct {
		args []string
		want []bool
	}{
		{nil, []bool{false, true}},
		{[]string{"-o", "datxdp.port:5555", "-o", "datxdp.check_crc:false"}, []bool{true, true}},
		{[]string{"-o", "datxdp.port:70000"}, []bool{false, true}},
	} {
		for i, p := range dissect(t, packets, tc.args...) {
			got := p.items()
			if (len(got) > 0) != tc.want[i] {
				t.Errorf("%v: packet %d: dissected is %v", tc.args, i+1, len(got) > 0)
			}
			checked := slices.Contains(got, item{Name: "crc.good"})
			if want := tc.want[i] && !slices.Contains(tc.args, "datxdp.check_crc:false"); checked != want {
				t.Errorf("%v: packet %d: checksum checked is %v", tc.args, i+1, checked)
			}
		}
	}
}
