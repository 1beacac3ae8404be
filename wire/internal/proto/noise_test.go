package proto

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fill(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n) }

func TestNoiseLayout(t *testing.T) {
	n := Noise{Form: FormNNpsk0, KeyID: [4]byte{1, 2, 3, 4}, Head: fill(32, 5)}
	got := n.Append([]byte{9})
	if want := append([]byte{9, 2, 1, 2, 3, 4}, fill(32, 5)...); !bytes.Equal(got, want) {
		t.Errorf("value is\n% x, want\n% x", got, want)
	}
	var again Noise
	if !again.Parse(got[1:], Accept) {
		t.Fatal("refused")
	}
	if d := cmp.Diff(n, again); d != "" {
		t.Error(d)
	}
	n.Cipher = 0xf
	if got := n.Append(nil)[0]; got != 0xf2 {
		t.Errorf("form and cipher are %#x, want 0xf2", got)
	}
}

// The head must have exactly the size of its form and type of packet.
func TestNoiseSizes(t *testing.T) {
	sizes := map[Form]map[Type]int{
		FormIK:     {Connect: 80, Accept: 32, Reject: 32},
		FormNNpsk0: {Connect: 32, Accept: 32, Reject: 32},
	}
	for first := range 256 {
		for typ := range numTypes {
			for size := range MaxNoiseSize + 2 {
				value := append([]byte{byte(first)}, make([]byte, size)...)
				want, known := sizes[Form(first)][typ] // the upper half is 0
				if ok := new(Noise).Parse(value, typ); ok != (known && size == 4+want) {
					t.Fatalf("first byte %#x, type %d, %d bytes after it: %v", first, typ, size, ok)
				}
			}
		}
	}
	if new(Noise).Parse(nil, Connect) {
		t.Error("an empty value was accepted")
	}
}

// noiseConnect returns a Connect without a trailer.
func noiseConnect(hi *Hello) []byte {
	b := make([]byte, HeaderSize+hi.Size())
	(&Header{Type: Connect, PSN: 7}).Put(b)
	hi.Put(b[HeaderSize:])
	return b
}

// server is the address to which the Connects of the tests are sent.
var server = netip.MustParseAddr("10.0.0.1")

// The prologue of a shared secret must name the server, and that of a public key must not.
func TestPrologueNamesServer(t *testing.T) {
	other := netip.MustParseAddr("10.0.0.2")
	for form, names := range map[Form]bool{FormIK: false, FormNNpsk0: true} {
		n := Noise{Form: form, Head: fill(form.HeadSize(Connect), 5)}
		connect := noiseConnect(&Hello{CID: 1, Cookie: 2, UDPPort: 3, Noise: n.Append(nil)})
		if same := bytes.Equal(AppendPrologue(nil, connect, server), AppendPrologue(nil, connect, other)); same == names {
			t.Errorf("form %d: the prologues for two servers are equal: %v", form, same)
		}
	}
}

// The prologue must cover the Connect up to the end of its options, without the head.
func TestPrologue(t *testing.T) {
	n := Noise{Form: FormIK, KeyID: [4]byte{1, 2, 3, 4}, Head: fill(80, 5)}
	hi := Hello{CID: 1, Cookie: 2, UDPPort: 3, Noise: n.Append(nil), Private: []byte("secret")}
	connect := noiseConnect(&hi)
	before := bytes.Clone(connect)
	got := AppendPrologue([]byte{9}, connect, server)
	n.Head = fill(80, 0)
	hi.Noise = n.Append(nil)
	want := slices.Concat([]byte{9}, []byte("datxdp secure v2"), noiseConnect(&hi)[:len(connect)-len(hi.Private)])
	if !bytes.Equal(got, want) {
		t.Errorf("prologue is\n% x, want\n% x", got, want)
	}
	if !bytes.Equal(connect, before) {
		t.Error("the Connect has changed")
	}
	for i := range len(connect) - len(hi.Private) {
		changed := bytes.Clone(connect)
		changed[i] ^= 0x40
		if i >= HeaderSize+48 && i < HeaderSize+HelloSize || i >= HeaderSize+HelloSize && i < HeaderSize+HelloSize+6 {
			continue // lengths and types of options, whose change makes another Hello
		}
		head := i >= len(connect)-len(hi.Private)-80
		if same := bytes.Equal(AppendPrologue([]byte{9}, changed, server), want); same != head {
			t.Errorf("a change of byte %d changes the prologue: %v", i, !same)
		}
	}
}

func TestSealedTypes(t *testing.T) {
	sealed := []Type{Data, Ack, Probe, Probed, Close, Closed}
	for typ := Data; typ < numTypes; typ++ {
		if typ.Sealed() != slices.Contains(sealed, typ) {
			t.Errorf("type %d is sealed: %v", typ, typ.Sealed())
		}
	}
}

func FuzzNoise(f *testing.F) {
	f.Add(byte(Connect), (&Noise{Form: FormIK, Head: fill(80, 1)}).Append(nil))
	f.Add(byte(Accept), (&Noise{Form: FormIK, Head: fill(32, 1)}).Append(nil))
	f.Add(byte(Reject), (&Noise{Form: FormNNpsk0, Head: fill(32, 1)}).Append(nil))
	f.Add(byte(Connect), []byte{1, 2, 3, 4, 5})
	f.Add(byte(Connect), []byte{0x12})
	f.Fuzz(func(t *testing.T, typ byte, b []byte) {
		var n Noise
		if !n.Parse(b, Type(typ)) {
			return
		}
		if out := n.Append(nil); !bytes.Equal(out, b) || len(out) > MaxNoiseSize {
			t.Fatalf("% x became % x", b, out)
		}
	})
}

// No Hello that Parse accepts may make AppendPrologue panic, and the private data may not change the prologue.
func FuzzPrologue(f *testing.F) {
	f.Add(putHello(&Hello{CID: 1, Noise: (&Noise{Form: FormIK, Head: fill(80, 5)}).Append(nil), Private: []byte("abc")}), []byte(nil))
	f.Add(withOptions(slices.Concat([]byte{9, 1, 5, 0x81, 37, 2, 1, 2, 3, 4}, fill(32, 5), []byte{1, 2, 0, 7})...), []byte("x"))
	f.Fuzz(func(t *testing.T, b, private []byte) {
		var h Hello
		var n Noise
		if !h.Parse(b) || !n.Parse(h.Noise, Connect) {
			return
		}
		connect := append(make([]byte, HeaderSize), b...)
		got := AppendPrologue(nil, connect, server)
		want := len(prologueLabel) + len(connect) - len(h.Private)
		if n.Form == FormNNpsk0 {
			want += 16
		}
		if len(got) != want {
			t.Fatalf("prologue of %d bytes, Connect of %d with %d private bytes", len(got), len(connect), len(h.Private))
		}
		other := append(connect[:len(connect)-len(h.Private)], private...)
		if !bytes.Equal(AppendPrologue(nil, other, server), got) {
			t.Fatal("private data changes the prologue")
		}
	})
}
