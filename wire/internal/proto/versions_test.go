package proto

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

func TestSACKSizes(t *testing.T) {
	for last, want := range map[int]int{0: 4, 31: 4, 32: 8, 63: 8, 64: 12, MaxWindow - 33: MaxSACKSize - 4, MaxWindow - 32: MaxSACKSize,
		MaxWindow - 1: MaxSACKSize} {
		if got := SACKSize(last); got != want {
			t.Errorf("a block whose last bit is %d has %d bytes, want %d", last, got, want)
		}
	}
	for n := range MaxSACKSize + 8 {
		fits := n == MaxSACKSize
		for last := range MaxWindow {
			fits = fits || SACKSize(last) == n
		}
		if SACKFits(n) != fits {
			t.Errorf("a block may have %d bytes: %v, want %v", n, !fits, fits)
		}
	}
	if SACKFits(-4) {
		t.Error("a block may have -4 bytes")
	}
}

// foreignConnect is the shortest Connect of another version that is answered.
func foreignConnect(version byte) []byte {
	b := make([]byte, HeaderSize)
	(&Header{Type: Connect, Flags: 0xff, CID: 99, PSN: 0x01020304, Ack: 98, TS: 97, Tag: 96}).Put(b)
	b[0] = version<<4 | byte(Connect)
	b = binary.BigEndian.AppendUint32(b, 0x05060708)
	b = binary.BigEndian.AppendUint32(b, 0x090a0b0c)
	return append(b, 0, 0, 0, 0)
}

func TestForeign(t *testing.T) {
	for _, version := range []byte{0, 1, 3, 15} {
		h := Header{Flags: 1, Echo: 2} // Foreign must overwrite all fields
		b := foreignConnect(version)
		b[offFlags] = byte(SourcePort)
		got, flags, ok := Foreign(b, &h)
		want := Header{Type: Versions, CID: 0x05060708, Ack: 0x01020304, Tag: 0x090a0b0c}
		if !ok || got != version || flags != SourcePort || h != want {
			t.Errorf("version %d: %d, flags %#x, %v, %+v", version, got, flags, ok, h)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":             nil,
		"too short":           foreignConnect(3)[:HeaderSize+8+TrailerSize-1],
		"this version":        foreignConnect(Version),
		"Accept":              append([]byte{3<<4 | byte(Accept)}, foreignConnect(3)[1:]...),
		"an answer as ours":   append([]byte{3<<4 | byte(Versions)}, foreignConnect(3)[1:]...),
		"a type of no packet": append([]byte{3<<4 | 15}, foreignConnect(3)[1:]...),
	} {
		h := Header{PSN: 5}
		if _, _, ok := Foreign(b, &h); ok || h != (Header{PSN: 5}) {
			t.Errorf("%s: %v, %+v", name, ok, h)
		}
	}
}

func TestPutVersions(t *testing.T) {
	b := foreignConnect(3)
	var h Header
	asked, _, _ := Foreign(b, &h)
	h.Put(b)
	n := PutVersions(b, b[HeaderSize:], asked)
	if n != 1 || b[HeaderSize] != Version || b[0] != 3<<4|byte(Versions) {
		t.Errorf("%d versions, the first is %d; the packet begins with %#x", n, b[HeaderSize], b[0])
	}
	if HeaderSize+n+TrailerSize > len(b) {
		t.Error("the answer is longer than the shortest question")
	}
}

func FuzzForeign(f *testing.F) {
	f.Add(foreignConnect(1))
	f.Add(foreignConnect(3)[:HeaderSize+8+TrailerSize-1])
	f.Add(foreignConnect(Version))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Header
		asked, _, ok := Foreign(slices.Clip(b), &h)
		if !ok {
			return
		}
		if h.Parse(b) {
			t.Fatalf("% x is of another version, and of ours", b)
		}
		Foreign(b, &h)
		out := bytes.Clone(b)
		h.Put(out)
		if n := PutVersions(out, out[HeaderSize:], asked); HeaderSize+n+TrailerSize > len(b) {
			t.Fatalf("the answer to %d bytes has %d", len(b), HeaderSize+n+TrailerSize)
		}
		if _, _, again := Foreign(out, &h); again {
			t.Fatalf("the answer % x is answered", out)
		}
	})
}
