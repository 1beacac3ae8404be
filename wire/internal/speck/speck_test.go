package speck

import "testing"

// The vector of the paper: key 1918 1110 0908 0100, plaintext 6574 694c, ciphertext a868 42f2.
func TestPaperVector(t *testing.T) {
	k := New(0x1918111009080100)
	if got := k.Encrypt(0x6574694c); got != 0xa86842f2 {
		t.Fatalf("Encrypt = %#x, want 0xa86842f2", got)
	}
}

func FuzzInverse(f *testing.F) {
	f.Add(uint64(1), uint32(0))
	f.Fuzz(func(t *testing.T, key uint64, v uint32) {
		k := New(key)
		if got := k.Decrypt(k.Encrypt(v)); got != v {
			t.Fatalf("Decrypt(Encrypt(%#x)) = %#x", v, got)
		}
	})
}

func BenchmarkDecrypt(b *testing.B) {
	k, v := New(42), uint32(7)
	for b.Loop() {
		v = k.Decrypt(v)
	}
	_ = v
}
