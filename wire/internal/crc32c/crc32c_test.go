package crc32c

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestUpdate checks every length at many alignments, in one piece and in two.
func TestUpdate(t *testing.T) {
	if !wide {
		t.Log("this processor has no fold: hash/crc32 is compared with itself")
	}
	rng := rand.NewChaCha8([32]byte{1})
	b := make([]byte, 1<<11+64)
	_, _ = rng.Read(b)
	for n := range 1<<11 + 1 {
		p := b[n%64:][:n]
		check(t, p, n*5/8)
	}
}

// check compares Update with the standard library, for b in one piece and in two.
func check(t *testing.T, p []byte, cut int) {
	t.Helper()
	want := crc32.Checksum(p, table)
	if whole, cutted := Update(0, p), Update(Update(0, p[:cut]), p[cut:]); whole != want || cutted != want {
		t.Fatalf("%d bytes: %08x, cut at %d %08x, want %08x", len(p), whole, cut, cutted, want)
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte("123456789"), uint(4))
	f.Add(make([]byte, 1000), uint(300))
	f.Fuzz(func(t *testing.T, p []byte, cut uint) { check(t, p, int(cut%uint(len(p)+1))) })
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{64, 128, 1440, 8900, 65000} {
		p := make([]byte, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				Update(0, p)
			}
		})
		b.Run(fmt.Sprintf("%d/std", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				crc32.Update(0, table, p)
			}
		})
	}
}
