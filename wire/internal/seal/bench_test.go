package seal

import (
	"fmt"
	"testing"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

var sizes = []int{64, 1400, 8900}

func BenchmarkSeal(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := pair(b, LimitsFor(1500))
			p := data(n)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				s.Seal(p, 0)
			}
		})
	}
}

// BenchmarkOpen opens one packet again and again, with an empty window each time.
func BenchmarkOpen(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			from, to := pair(b, LimitsFor(1500))
			p := sealed(b, from, n, 0)
			q := make([]byte, len(p))
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				copy(q, p)
				to.recv.window = window{}
				if _, result := to.Open(q, 0); result != Opened {
					b.Fatal(result)
				}
			}
		})
	}
}

// frame is the payload of a frame of AF_XDP with 4096 bytes.
const frame = 4096 - 256 - 42

// BenchmarkGather measures a packet of 8900 bytes that arrives in three frames: copied into one buffer and opened there.
func BenchmarkGather(b *testing.B) {
	const n = 8900
	from, to := pair(b, LimitsFor(n))
	p := sealed(b, from, n, 0)
	var frames [64][][]byte // so many that they are not all in the first cache
	for i := range frames {
		for rest := p; len(rest) > 0; rest = rest[min(frame, len(rest)):] {
			frames[i] = append(frames[i], append(make([]byte, 0, 4096), rest[:min(frame, len(rest))]...))
		}
	}
	q := make([]byte, 0, proto.HeaderSize+n+Overhead)
	b.SetBytes(n)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q = q[:0]
		for _, f := range frames[i%len(frames)] {
			q = append(q, f...)
		}
		to.recv.window = window{}
		if _, result := to.Open(q, 0); result != Opened {
			b.Fatal(result)
		}
	}
}

func BenchmarkForged(b *testing.B) {
	from, to := pair(b, LimitsFor(1500))
	p := sealed(b, from, 1400, 0)
	p[0] ^= 1
	b.ReportAllocs()
	for b.Loop() {
		if _, result := to.Open(p, 0); result != Forged {
			b.Fatal(result)
		}
	}
}

// BenchmarkNew measures the keys of a new connection.
func BenchmarkNew(b *testing.B) {
	up, down := secrets()
	b.ReportAllocs()
	for b.Loop() {
		send, receive := up, down
		if _, err := New(&Config{Send: &send, Receive: &receive, Limits: LimitsFor(1500)}, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpdate measures the change of the sending key.
func BenchmarkUpdate(b *testing.B) {
	s, _ := pair(b, LimitsFor(1500))
	b.ReportAllocs()
	for b.Loop() {
		s.advance(0)
	}
}
