package crc32c

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"
)

// wide is whether fold may be called.
var wide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42

// wideMin is the fewest bytes that fold takes. It is faster from there on (BenchmarkUpdate).
const wideMin = 64

// fold is Update of at least wideMin bytes.
func fold(crc uint32, b []byte) uint32 { return foldBy(&theFactors, crc, b) }

// foldBy is fold with the factors at hand.
//
// The checksum is the remainder of a division of polynomials. It stays the same if 16 bytes are taken out of the input
// and what they are congruent to is added (an exclusive or) some bytes further on. That is done to 4 x 64 bytes at once
// until 16 are left, whose checksum is that of all. (V. Gopal and others, "Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ Instruction", Intel, 2009.)
//
//go:noescape
func foldBy(f *factors, crc uint32, b []byte) uint32

// factors are what the first and the last 8 of 16 bytes are multiplied by to be moved on. fold_amd64.s knows where each
// one is.
type factors struct {
	by256, by192, by128, by64 [2]uint64
	lanes                     [4][2]uint64 // each 16 of 64 bytes to the last, which stay
}

var theFactors = factors{moved(256), moved(192), moved(128), moved(64), [4][2]uint64{moved(48), moved(32), moved(16)}}

// moved is the factors for n bytes: a product of two numbers of 64 bits in the order of the checksum, least power last,
// is that of the polynomials times x^32.
func moved(n int) [2]uint64 { return [2]uint64{power(8*n + 32), power(8*n - 32)} }

// power is x^n modulo the polynomial, in the bit order of the checksum and shifted by one.
func power(n int) uint64 {
	p := uint32(1 << 31)
	for range n {
		p = p>>1 ^ p&1*crc32.Castagnoli
	}
	return uint64(p) << 1
}
