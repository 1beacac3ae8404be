package wire

import (
	"bytes"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
	seal128 "github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// place returns the range of bytes that a field changes: "4–7", "1", or "40–" up to the end.
func place(zero, set []byte) string {
	if len(set) > len(zero) {
		return fmt.Sprintf("%d–", len(zero))
	}
	first, last := -1, -1
	for i := range zero {
		if zero[i] != set[i] {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d–%d", first, last)
}

// checkLayout compares the documented byte ranges of a structure with its encoding. The argument rows has the rows of
// the table in the document, each with a byte range and a field name. The argument zero is the encoding with all fields
// zero. For each field name, the map set has the encoding with only that field set. The bytes that differ between the
// two encodings must be the byte range of the field in the table. The table must have a row for every field. A row with
// the name 0 is for bytes that belong to no field.
func checkLayout(t *testing.T, rows [][]string, zero []byte, set map[string][]byte) {
	t.Helper()
	next := 0
	for _, row := range rows {
		name := row[1]
		var first, last int
		switch n, _ := fmt.Sscanf(row[0], "%d–%d", &first, &last); n {
		case 0:
			t.Errorf("%q is no range of bytes", row[0])
		case 1:
			last = first
		}
		if first != next {
			t.Errorf("%s begins at %d, the row before ends at %d", name, first, next)
		}
		next = last + 1
		if name == "0" {
			continue
		}
		b, ok := set[name]
		if !ok {
			t.Errorf("the codec has no field %q", name)
			continue
		}
		delete(set, name)
		if got := place(zero, b); got != row[0] {
			t.Errorf("%s is at %s, the document says %s", name, got, row[0])
		}
	}
	for name := range set {
		t.Errorf("the document has no row %q", name)
	}
}

func TestDocumentHeader(t *testing.T) {
	put := func(h proto.Header) []byte {
		b := make([]byte, proto.HeaderSize)
		h.Put(b)
		return b
	}
	set := map[string][]byte{
		"version, type": put(proto.Header{Type: 0xf}),
		"flags":         put(proto.Header{Flags: 0xff}),
		"CE":            put(proto.Header{CE: 0xffff}),
		"CID":           put(proto.Header{CID: ^uint32(0)}),
		"PSN":           put(proto.Header{PSN: ^seq.Num(0)}),
		"ack":           put(proto.Header{Ack: ^seq.Num(0)}),
		"credit":        put(proto.Header{Credit: ^seq.Num(0)}),
		"TS":            put(proto.Header{TS: ^uint32(0)}),
		"echo":          put(proto.Header{Echo: ^uint32(0)}),
		"tag":           put(proto.Header{Tag: ^uint32(0)}),
		"body":          append(put(proto.Header{}), 1),
	}
	rows := documentTable(t, "## Packet", "| bytes | field | meaning |")
	last := rows[len(rows)-1]
	if want := fmt.Sprintf("last %d", proto.TrailerSize); last[0] != want {
		t.Errorf("the trailer is %q, want %q", last[0], want)
	}
	checkLayout(t, rows[:len(rows)-1], put(proto.Header{}), set)
	if want := fmt.Sprintf("version (%d) in the upper four bits", proto.Version); !strings.Contains(rows[0][2], want) {
		t.Errorf("%q is not %q", rows[0][2], want)
	}
	if want := fmt.Sprintf("units of %d ns", 1<<clock.StampShift); !strings.Contains(rows[7][2], want) {
		t.Errorf("%q is not in %q", rows[7][2], want)
	}
}

// The headers of Connect and Accept must be as docs/WIRE.md says, and both ends must have a sample of the round trip as soon
// as they are established.
func TestDocumentHandshakeHeaders(t *testing.T) {
	const delay = 3 * time.Millisecond
	w := newWorld(t, simlink.Config{Delay: delay}, 2)
	headers := map[proto.Type]proto.Header{}
	sentAt := map[proto.Type]Time{}
	for _, n := range w.nodes {
		w.tap(n, &tap{show: func(b []byte) {
			var h proto.Header
			if h.Parse(b) {
				headers[h.Type], sentAt[h.Type] = h, Time(w.net.Now())
			}
		}})
	}
	ca, cb := w.pair(plain)
	co, ac := headers[proto.Connect], headers[proto.Accept]
	rows := documentTable(t, "### Headers of the handshake", "| field | Connect | Accept |")
	if len(rows) != 8 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, tc := range []struct {
		field     string
		got, want any
	}{
		{"CE, CID, ack, echo and tag of Connect", []any{co.CE, co.CID, co.Ack, co.Echo, co.Tag}, []any{uint16(0), uint32(0), seq.Num(0), uint32(0), uint32(0)}},
		{"PSN of Connect", co.PSN, cb.recv.nextPSN - 1},
		{"TS of Connect", co.TS, sentAt[proto.Connect].Stamp()},
		{"CE, CID and tag of Accept", []any{ac.CE, ac.CID, ac.Tag}, []any{uint16(0), ca.cid, ca.tag}},
		{"PSN of Accept", ac.PSN, ca.recv.nextPSN},
		{"ack of Accept", ac.Ack, co.PSN},
		{"TS of Accept", ac.TS, sentAt[proto.Accept].Stamp()},
	} {
		if !reflect.DeepEqual(tc.got, tc.want) {
			t.Errorf("%s is %v, want %v", tc.field, tc.got, tc.want)
		}
	}
	for i, c := range []*Conn{ca, cb} {
		if d := c.rtt.Smoothed(); d < 2*delay || d > 2*delay+100*time.Microsecond {
			t.Errorf("end %d: the round trip is %v, want %v", i, d, 2*delay)
		}
	}
}

func TestDocumentHello(t *testing.T) {
	put := func(h proto.Hello) []byte {
		b := make([]byte, h.Size())
		h.Put(b)
		clear(b[proto.HelloSize-4 : proto.HelloSize]) // the lengths have rows of their own
		return b
	}
	zero := put(proto.Hello{})
	length := func(at int) []byte { b := slices.Clone(zero); b[at], b[at+1] = 1, 1; return b }
	options, private := length(48), length(50)
	for name, b := range map[string][]byte{
		"options":      slices.Concat(options[:48], []byte{1, 0}, zero[50:], []byte{9, 254}, make([]byte, 254)),
		"private data": slices.Concat(private, make([]byte, 1<<8+1)),
	} {
		if h := new(proto.Hello); !h.Parse(b) {
			t.Errorf("the length of the %s is elsewhere", name)
		}
	}
	rows := documentTable(t, "### Hello", "| bytes | field | meaning |")
	checkLayout(t, rows, zero, map[string][]byte{
		"CID":                   put(proto.Hello{CID: ^uint32(0)}),
		"tag":                   put(proto.Hello{Tag: ^uint32(0)}),
		"MTU":                   put(proto.Hello{MTU: ^uint32(0)}),
		"window":                put(proto.Hello{Window: ^uint16(0)}),
		"reads served":          put(proto.Hello{ReadIn: ^uint16(0)}),
		"reads wanted":          put(proto.Hello{ReadOut: ^uint16(0)}),
		"reason":                put(proto.Hello{Reason: 0xff}),
		"capabilities":          put(proto.Hello{Capabilities: ^uint32(0)}),
		"qualifier":             put(proto.Hello{Qual: ^uint64(0)}),
		"port":                  put(proto.Hello{Port: ^uint64(0)}),
		"cookie":                put(proto.Hello{Cookie: ^uint64(0)}),
		"options length":        options,
		"private length":        private,
		"options, private data": put(proto.Hello{UDPPort: 1, Private: []byte{1}}),
	})
	for row, want := range map[int]string{
		len(rows) - 3: fmt.Sprintf("at most %d", proto.MaxOptions),
		len(rows) - 2: fmt.Sprintf("with option 0x81 at most %d, otherwise at most %d", proto.MaxNoiseData, proto.MaxPrivateData),
	} {
		if !strings.HasSuffix(rows[row][2], want) {
			t.Errorf("%q is not in %q", want, rows[row][2])
		}
	}
}

func TestDocumentOptions(t *testing.T) {
	var noise []string
	for _, form := range []proto.Form{proto.FormNNpsk0, proto.FormIK} {
		noise = append(noise, fmt.Sprint(len(noiseOption(form))))
	}
	want := []struct {
		hello        proto.Hello
		name, length string
	}{
		{proto.Hello{UDPPort: 0x1234}, "UDP port", "2"},
		{proto.Hello{ServerKey: make([]byte, proto.PublicKeySize)}, "server key", fmt.Sprint(proto.PublicKeySize)},
		{proto.Hello{Noise: noiseOption(proto.FormIK)}, "Noise handshake", strings.Join(noise, " or ")},
	}
	rows := documentTable(t, "### Hello", "| type | | length | value |")
	if len(rows) != len(want) {
		t.Fatalf("%d options, want %d", len(rows), len(want))
	}
	for i, w := range want {
		o := helloOf(&w.hello)[proto.HelloSize:]
		if want := []string{fmt.Sprintf("0x%02x", o[0]), w.name, w.length}; !slices.Equal(rows[i][:3], want) || len(o) != 2+int(o[1]) {
			t.Errorf("%v, want %v", rows[i], want)
		}
	}
}

func TestDocumentNoise(t *testing.T) {
	const heading = "### Secure handshake"
	put := func(n proto.Noise) []byte { return n.Append(nil) }
	checkLayout(t, documentTable(t, heading, "| bytes | field | meaning |"), put(proto.Noise{}), map[string][]byte{
		"form, cipher": put(proto.Noise{Form: 0xf, Cipher: 0xf}),
		"key ID":       put(proto.Noise{KeyID: [4]byte{1, 1, 1, 1}}),
		"head":         put(proto.Noise{Head: []byte{1}}),
	})
	rows := documentTable(t, heading, "| form | Noise protocol | head in Connect | head in Accept and Reject |")
	for i, form := range []proto.Form{proto.FormIK, proto.FormNNpsk0} {
		sizes := []string{fmt.Sprint(form.HeadSize(proto.Connect)), fmt.Sprint(form.HeadSize(proto.Accept))}
		if rows[i][0] != fmt.Sprint(form) || !slices.Equal(rows[i][2:], sizes) || form.HeadSize(proto.Accept) != form.HeadSize(proto.Reject) {
			t.Errorf("%v, want sizes %v", rows[i], sizes)
		}
	}
	if len(rows) != 2 {
		t.Errorf("%d forms, want 2", len(rows))
	}
}

// The sealed types, the layout of a sealed packet and the limits of its keys must be those of the code.
func TestDocumentSealed(t *testing.T) {
	const heading = "### Sealed packets"
	rows := documentTable(t, heading, "| bytes | field | meaning |")
	for i, want := range []string{fmt.Sprintf("0–%d", proto.HeaderSize-1), fmt.Sprintf("%d–", proto.HeaderSize), fmt.Sprintf("last %d", proto.SealSize)} {
		if rows[i][0] != want {
			t.Errorf("%v, want %s", rows[i], want)
		}
	}
	var sealed []string
	for _, row := range documentTable(t, "## Packet", "| type | | body |") {
		if n, _ := strconv.Atoi(row[0]); proto.Type(n).Sealed() {
			sealed = append(sealed, row[1])
		}
	}
	last := len(sealed) - 1
	long, short := seal128.LimitsFor(1<<16), seal128.LimitsFor(2048)
	checkPhrases(t, []string{
		strings.Join(sealed[:last], ", ") + " and " + sealed[last] + " of a secure connection are sealed",
		fmt.Sprintf("A sealed packet ends with %d bytes instead", proto.SealSize),
		fmt.Sprintf("Bytes %d–%d have its lower half", proto.OffCounter, proto.OffCounter+3),
		fmt.Sprintf("%d bytes less for chunks", proto.SealSize-proto.TrailerSize),
		fmt.Sprintf("the packet has at least %d bytes", proto.HeaderSize+proto.SealSize),
		fmt.Sprintf("replay window of %d counters", seal128.WindowSize),
		fmt.Sprintf("at most 2^%d packets, or 2^%d if", bits.Len64(long.Packets)-1, bits.Len64(short.Packets)-1),
		fmt.Sprintf("after 2^%d packets that did not open", bits.Len64(long.Failures)-1),
		fmt.Sprintf("has used %d/16 of the packets", long.Update*16/long.Packets),
		fmt.Sprintf("have at most %d bytes together", proto.MaxVariable),
		fmt.Sprintf("at most %d bytes", proto.MaxPrivateData),
	})
}

func TestDocumentGoodbye(t *testing.T) {
	put := func(g proto.Goodbye) []byte {
		b := make([]byte, proto.GoodbyeSize)
		g.Put(b)
		return b
	}
	rows := documentTable(t, "### Goodbye", "| bytes | field | meaning |")
	checkLayout(t, rows, put(proto.Goodbye{}), map[string][]byte{
		"CID":    put(proto.Goodbye{CID: ^uint32(0)}),
		"number": put(proto.Goodbye{Num: ^uint32(0)}),
		"reason": put(proto.Goodbye{Reason: 0xff}),
		"op":     put(proto.Goodbye{Op: 0xff}),
	})
	if want := fmt.Sprintf("–%d", proto.GoodbyeSize-1); !strings.HasSuffix(rows[len(rows)-1][0], want) {
		t.Errorf("a Goodbye ends at %s, want %s", rows[len(rows)-1][0], want)
	}
}

func TestDocumentChunks(t *testing.T) {
	type fields map[string]proto.Chunk
	want := map[string]struct {
		op     proto.Op
		fields fields
	}{
		"Ready": {proto.OpReady, fields{}},
		"Send":  {proto.OpSend, fields{"message number": {Num: ^seq.Num(0)}, "offset in the message": {Off: ^uint32(0)}}},
		"Write": {proto.OpWrite, fields{"key": {Key: ^uint32(0)}, "address": {Addr: ^uint64(0)}}},
		"ReadReq": {proto.OpReadReq, fields{"key": {Key: ^uint32(0)}, "address": {Addr: ^uint64(0)}, "length": {Size: ^uint32(0)},
			"read number": {Num: ^seq.Num(0)}}},
		"WriteImm": {proto.OpWriteImm, fields{"key": {Key: ^uint32(0)}, "address": {Addr: ^uint64(0)}, "message number": {Num: ^seq.Num(0)},
			"offset in the write": {Off: ^uint32(0)}, "immediate data": {Imm: ^uint32(0)}}},
		"AtomicReq": {proto.OpAtomicReq, fields{"key": {Key: ^uint32(0)}, "address": {Addr: ^uint64(0)}, "read number": {Num: ^seq.Num(0)},
			"operand": {Value: ^uint64(0)}, "comparand": {Comp: ^uint64(0)}}},
		"AtomicResp": {proto.OpAtomicResp, fields{"read number": {Num: ^seq.Num(0)}, "old value": {Value: ^uint64(0)}}},
		"ReadResp":   {proto.OpReadResp, fields{"read number": {Num: ^seq.Num(0)}, "offset in the read": {Off: ^uint32(0)}}},
		"SendOnly":   {proto.OpSendOnly, fields{}},
		"SendInv": {proto.OpSendInv, fields{"message number": {Num: ^seq.Num(0)}, "offset in the message": {Off: ^uint32(0)},
			"key": {Key: ^uint32(0)}}},
	}
	for _, row := range documentTable(t, "### Chunks", "| op | | after the first 4 bytes | payload |") {
		w, ok := want[row[1]]
		if !ok || row[0] != fmt.Sprint(w.op) {
			t.Errorf("op %s is %s?", row[0], row[1])
			continue
		}
		delete(want, row[1])
		b := bytes.Repeat([]byte{0}, proto.ChunkSize(byte(w.op)))
		b[0] = byte(w.op)
		at := 4
		for _, f := range strings.Split(row[2], ", ") {
			if f == "–" {
				break
			}
			name, width, _ := strings.Cut(strings.TrimSuffix(f, ")"), " (")
			n, _ := strconv.Atoi(width)
			set := slices.Clone(b)
			copy(set[at:at+n], bytes.Repeat([]byte{0xff}, n))
			var c proto.Chunk
			c.Parse(set)
			c.Op = 0
			if c != w.fields[name] {
				t.Errorf("%s: setting bytes %d–%d gives %+v, want %s", row[1], at, at+n-1, c, name)
			}
			delete(w.fields, name)
			at += n
		}
		if at != len(b) || len(w.fields) > 0 {
			t.Errorf("%s: %d bytes, want %d; missing are %v", row[1], at, len(b), w.fields)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
