package proto

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fullHello has every field set to a different value.
var fullHello = Hello{CID: 0x01020304, Tag: 0x05060708, MTU: 0x090a0b0c, Window: 0x0d0e, ReadIn: 0x0f10, ReadOut: 0x1112,
	Reason: 0x13, Capabilities: 0x15161718, Qual: 0x191a1b1c1d1e1f20, Port: 0x2122232425262728,
	Cookie: 0x292a2b2c2d2e2f30, UDPPort: 0x4142, ServerKey: []byte(serverKey), Noise: []byte("\x51\x52"), Private: []byte("abc")}

const serverKey = "0123456789abcdef0123456789abcdef"

func putHello(h *Hello) []byte {
	b := bytes.Repeat([]byte{0xee}, h.Size())
	return b[:h.Put(b)]
}

func TestHelloLayout(t *testing.T) {
	got := putHello(&fullHello)
	want := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 0x13, 0, 0x15, 0x16, 0x17, 0x18,
		0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
		0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f, 0x30, 0, 42, 0, 3, 1, 2, 0x41, 0x42, 2, 32}
	want = append(append(want, serverKey...), 0x81, 2, 0x51, 0x52, 'a', 'b', 'c')
	if !bytes.Equal(got, want) {
		t.Errorf("Hello is\n% x, want\n% x", got, want)
	}
	var again Hello
	if !again.Parse(got) {
		t.Fatal("refused")
	}
	if d := cmp.Diff(fullHello, again); d != "" {
		t.Error(d)
	}
	// Every packet that the specification allows must fit, and no packet of this size may be refused.
	largest := Hello{UDPPort: 1, ServerKey: []byte(serverKey), Noise: make([]byte, MaxNoiseSize), Private: make([]byte, MaxNoiseData)}
	if n := largest.Size(); n > MaxHelloSize || !again.Parse(putHello(&largest)) {
		t.Errorf("a Hello of %d bytes is larger than MaxHelloSize, %d", n, MaxHelloSize)
	}
}

// withOptions returns a Hello with the options and the private data "xy".
func withOptions(options ...byte) []byte {
	b := putHello(&Hello{CID: 1})
	binary.BigEndian.PutUint16(b[48:], uint16(len(options)))
	binary.BigEndian.PutUint16(b[50:], 2)
	return slices.Concat(b, options, []byte("xy"))
}

func TestHelloOptions(t *testing.T) {
	for _, tc := range []struct {
		name    string
		options []byte
		ok      bool
		port    uint16
		refused uint8
	}{
		{"none", nil, true, 0, 0},
		{"UDP port", []byte{1, 2, 0x12, 0x34}, true, 0x1234, 0},
		{"unknown is skipped", []byte{9, 3, 1, 2, 3, 1, 2, 0, 7}, true, 7, 0},
		{"unknown without a value", []byte{0, 0, 0x7f, 0}, true, 0, 0},
		{"unknown twice", []byte{9, 0, 9, 0}, true, 0, 0},
		{"mandatory and unknown", []byte{0x82, 1, 5, 1, 2, 0, 7}, true, 7, 0x82},
		{"Noise is known", []byte{0x81, 1, 5, 1, 2, 0, 7}, true, 7, 0},
		{"Noise and unknown", []byte{0x81, 0, 0x82, 0}, true, 0, 0x82},
		{"two Noise options", []byte{0x81, 1, 5, 0x81, 1, 5}, false, 0, 0},
		{"two Noise options without a value", []byte{0x81, 0, 0x81, 0}, false, 0, 0},
		{"truncated Noise option", []byte{0x81, 3, 1, 2}, false, 0, 0},
		{"server key", append([]byte{2, 32}, serverKey...), true, 0, 0},
		{"server key without a value", []byte{2, 0}, false, 0, 0},
		{"server key of 31 bytes", append([]byte{2, 31}, serverKey[:31]...), false, 0, 0},
		{"server key of 33 bytes", append([]byte{2, 33, 0}, serverKey...), false, 0, 0},
		{"two server keys", slices.Concat([]byte{2, 32}, []byte(serverKey), []byte{2, 32}, []byte(serverKey)), false, 0, 0},
		{"the first mandatory one is named", []byte{0xff, 0, 0x80, 0}, true, 0, 0xff},
		{"half a head", []byte{9}, false, 0, 0},
		{"truncated", []byte{9, 3, 1, 2}, false, 0, 0},
		{"truncated after a good one", []byte{1, 2, 0, 7, 0x80, 1}, false, 7, 0},
		{"UDP port of three bytes", []byte{1, 3, 0, 7, 7}, false, 0, 0},
		{"UDP port without a value", []byte{1, 0}, false, 0, 0},
		{"UDP port 0", []byte{1, 2, 0, 0}, false, 0, 0},
		{"two UDP ports", []byte{1, 2, 0, 7, 1, 2, 0, 8}, false, 7, 0},
		{"as many bytes as there may be", append([]byte{9, MaxOptions - 2 - 2, 0, 0}, make([]byte, MaxOptions-4)...), true, 0, 0},
		{"more bytes than there may be", make([]byte, MaxOptions+2), false, 0, 0},
	} {
		h := Hello{UDPPort: 99, ServerKey: []byte{}, Noise: []byte{}, Refused: 99} // values from an earlier Parse
		if ok := h.Parse(withOptions(tc.options...)); ok != tc.ok {
			t.Errorf("%s: %v", tc.name, ok)
			continue
		}
		if tc.ok && (h.UDPPort != tc.port || h.Refused != tc.refused || string(h.Private) != "xy") {
			t.Errorf("%s: port %d, refused %d, private data %q", tc.name, h.UDPPort, h.Refused, h.Private)
		}
		if noise := bytes.IndexByte(tc.options, 0x81) >= 0; tc.ok && (noise != (h.Noise != nil) || h.Plain() == (noise || tc.refused != 0)) {
			t.Errorf("%s: Noise % x, plain %v", tc.name, h.Noise, h.Plain())
		}
		if key := bytes.HasPrefix(tc.options, []byte{2, 32}); tc.ok && key != (string(h.ServerKey) == serverKey) {
			t.Errorf("%s: server key % x", tc.name, h.ServerKey)
		}
	}
}

// The options and the private data must exactly fill the space after the fixed part.
func TestHelloLengths(t *testing.T) {
	good := withOptions(1, 2, 0, 7)
	change := func(at int, by byte) []byte { b := slices.Clone(good); b[at] += by; return b }
	for name, b := range map[string][]byte{
		"nothing":                nil,
		"one byte short of all":  good[:len(good)-1],
		"one byte more":          append(slices.Clone(good), 0),
		"only the fixed part":    good[:HelloSize],
		"less than that":         good[:HelloSize-1],
		"options longer":         change(49, 1),
		"options much longer":    change(48, 1),
		"private data shorter":   change(51, 0xff),
		"private data longer":    change(51, 1),
		"too much private data":  putHello(&Hello{Private: make([]byte, MaxPrivateData+1)}),
		"lengths that wrap 2^16": append(slices.Clone(good[:48]), 0xff, 0xff, 0, 1),
	} {
		if new(Hello).Parse(b) {
			t.Errorf("%s: accepted", name)
		}
	}
	if !new(Hello).Parse(good) {
		t.Error("a good Hello was refused")
	}
}

// With the Noise option a Hello has room for more private data, and options and private data share a limit.
func TestHelloNoiseLimits(t *testing.T) {
	for _, tc := range []struct {
		options, private int
		noise, ok        bool
	}{
		{0, MaxPrivateData, false, true},
		{0, MaxPrivateData + 1, false, false},
		{2, MaxPrivateData + 1, true, true},
		{2, MaxNoiseData, true, true},
		{2, MaxNoiseData + 1, true, false},
		{2, MaxNoiseData, false, false},
		{MaxVariable - MaxNoiseData, MaxNoiseData, true, true},
		{MaxVariable - MaxNoiseData + 1, MaxNoiseData, true, false},
		{MaxOptions, MaxPrivateData, true, true},
		{MaxOptions, MaxPrivateData + 1, true, false},
		{MaxOptions + 1, MaxPrivateData - 1, true, false},
	} {
		var options []byte
		if tc.options > 0 {
			options = make([]byte, tc.options)
			options[0], options[1] = 9, byte(min(tc.options-2, 100))
			if left := tc.options - 102; left > 0 {
				options[102], options[103] = 10, byte(left-2)
			}
			if tc.noise {
				options[0] = 0x81
			}
		}
		b := putHello(&Hello{CID: 1})
		binary.BigEndian.PutUint16(b[48:], uint16(tc.options))
		binary.BigEndian.PutUint16(b[50:], uint16(tc.private))
		var h Hello
		if ok := h.Parse(slices.Concat(b, options, make([]byte, tc.private))); ok != tc.ok || ok && len(h.Private) != tc.private {
			t.Errorf("%+v: %v", tc, ok)
		}
	}
}

// sent returns what Put writes for h.
func sent(h Hello) Hello {
	h.Refused = 0
	if len(h.Private) == 0 {
		h.Private = nil
	}
	return h
}

func FuzzHello(f *testing.F) {
	f.Add(putHello(&fullHello))
	f.Add(putHello(&Hello{CID: 1, MTU: 1472, Private: []byte("abc")}))
	f.Add(withOptions())
	f.Add(withOptions(9, 1, 5, 0x81, 0, 1, 2, 0, 7))
	f.Add(withOptions(1, 2, 0, 7, 1, 2, 0, 8))
	f.Add(withOptions(9, 3, 1))
	f.Add(withOptions(append([]byte{2, 32}, serverKey...)...))
	f.Add(withOptions(0x81, 0, 0x81, 0))
	f.Add(putHello(&Hello{CID: 1, Noise: make([]byte, MaxNoiseSize), Private: make([]byte, MaxNoiseData)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again Hello
		if !h.Parse(b) {
			return
		}
		out := putHello(&h)
		if len(out) != h.Size() || len(out) > len(b) || len(out) > MaxHelloSize {
			t.Fatalf("%d bytes became %d, Size is %d", len(b), len(out), h.Size())
		}
		if !again.Parse(out) || !cmp.Equal(sent(h), sent(again)) {
			t.Fatalf("%+v became %+v", h, again)
		}
	})
}
