package stream

import (
	"io"
	"testing"
)

// benchmark runs f over every link without loss.
func benchmark(b *testing.B, f func(b *testing.B, x, y *Conn)) {
	for _, l := range links {
		if l.name == "lossy sim" {
			continue
		}
		b.Run(l.name, func(b *testing.B) {
			a, z := l.make(b)
			x, y := newPair(b, a, z)
			f(b, x, y)
		})
	}
}

// A message of 64 bytes there and one back.
func BenchmarkRoundTrip(b *testing.B) {
	benchmark(b, func(b *testing.B, x, y *Conn) {
		go func() {
			p := make([]byte, 64)
			for {
				if _, err := io.ReadFull(y, p); err != nil {
					return
				}
				if _, err := y.Write(p); err != nil {
					return
				}
			}
		}()
		p := make([]byte, 64)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := x.Write(p); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(x, p); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchmarkWrites(b *testing.B, size int) {
	benchmark(b, func(b *testing.B, x, y *Conn) {
		go func() {
			p := make([]byte, 256<<10)
			for {
				if _, err := y.Read(p); err != nil {
					return
				}
			}
		}()
		p := make([]byte, size)
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := x.Write(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkWrite64(b *testing.B)   { benchmarkWrites(b, 64) }
func BenchmarkWrite1MiB(b *testing.B) { benchmarkWrites(b, 1<<20) }
