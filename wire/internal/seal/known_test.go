package seal

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// known are packets that another implementation has computed (HMAC-SHA-256 of Python, AES-GCM of OpenSSL). The secret
// is 00 01 … 1f, and the body is "a body of a packet".
var known = []struct {
	phase       uint32
	counter     uint64
	header, end string // header; encrypted body and tag
}{
	{0, 0, "21090003101112131415161718191a1b1c1d1e1f202122232425262700000000",
		"89b829594377a618fefe5d75fb01fb335fc723cf6654b7830c6ba8a2da4cd69db287"},
	{0, 0x100000005, "21090003101112131415161718191a1b1c1d1e1f202122232425262700000005",
		"388c69d0d01eb22838f92ce83ece97e2838040a38881317c8f710d531ffbdc1281a2"},
	{1, 0x100000006, "210d0003101112131415161718191a1b1c1d1e1f202122232425262700000006",
		"2bdad8a5cca9f5176eb8986199e33b6910654788d019c2a39434860185d3f174a287"},
	{2, 0x123456789a, "21090003101112131415161718191a1b1c1d1e1f20212223242526273456789a",
		"87c7e2794f32af8552e23b12640c812d105b010d346dac7e0c37068821ace4508cff"},
}

func TestKnownAnswers(t *testing.T) {
	const body = "a body of a packet"
	for _, k := range known {
		a, b := pair(t, LimitsFor(1500))
		for range k.phase {
			a.advance(0)
			b.recv.key, _ = b.recv.derive()
			b.recv.phase++
		}
		a.send.counter, a.send.first, b.recv.next = k.counter, k.counter, k.counter
		want := unhex(t, k.header+k.end)
		p := append(make([]byte, 0, 128), want[:32]...)
		p[1] ^= 4 // Seal sets the phase bit
		copy(p[28:], "xxxx")
		got, ok := a.Seal(append(p, body...), 0)
		if !ok || !bytes.Equal(got, want) {
			t.Errorf("phase %d, counter %x: sealed %x, want %x", k.phase, k.counter, got, want)
		}
		if got, result := b.Open(want, 0); result != Opened || string(got) != body {
			t.Errorf("phase %d, counter %x: opened %q, %d", k.phase, k.counter, got, result)
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
