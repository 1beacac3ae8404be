package message

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// Arbitrary bytes must not panic, and must not make the reader allocate more than twice what it received.
func FuzzReader(f *testing.F) {
	f.Add(append(header{length: 3, kind: kindRequest, id: 7}.append(nil), "abc"...), uint8(2), false)
	f.Add(header{length: 1 << 31}.append(nil), uint8(9), true)
	f.Fuzz(func(t *testing.T, in []byte, cut uint8, copies bool) {
		r := reader{src: &pieces{in: in, size: int(cut) + 1}, copies: copies, max: 1 << 10}
		var out []byte
		for {
			h, p, err := r.next()
			if err != nil {
				break
			}
			out = append(h.append(out), p...)
		}
		if !bytes.HasPrefix(in, out) {
			t.Errorf("%x became %x", in, out)
		}
	})
}

// pieces is a source that shows at most size bytes at a time.
type pieces struct {
	in   []byte
	size int
}

func (p *pieces) Peek() ([]byte, error) {
	if len(p.in) == 0 {
		return nil, io.EOF
	}
	return p.in[:min(p.size, len(p.in))], nil
}

func (p *pieces) Discard(n int) { p.in = p.in[n:] }

// ringful is a source that shows one frame for ever.
type ringful []byte

func (r ringful) Peek() ([]byte, error) { return r, nil }
func (r ringful) Discard(int)           {}

// BenchmarkReader compares frames in place with frames that are copied.
func BenchmarkReader(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64<<10 - headerSize, 1 << 20} {
		frame := append(header{length: uint32(size)}.append(nil), make([]byte, size)...)
		for _, copies := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d bytes, copies=%t", size, copies), func(b *testing.B) {
				r := reader{src: ringful(frame), copies: copies, max: size}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := r.next(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
