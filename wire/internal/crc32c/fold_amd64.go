package crc32c

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"
)

// wide reports whether the processor can run fold.
var wide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42

// wideMin is the shortest input of fold in bytes. For shorter input hash/crc32 is faster (BenchmarkUpdate).
const wideMin = 64

// fold is Update for at least wideMin bytes.
func fold(crc uint32, b []byte) uint32 { return foldBy(&theFactors, crc, b) }

// foldBy is fold with the multipliers as an argument.
//
// A checksum is the remainder of a polynomial division. It stays the same if 16 bytes are removed from the input and a
// congruent value is added to later bytes (exclusive or). foldBy does so for 4 x 64 bytes at a time, until 16 bytes are
// left, whose checksum is that of the whole input (V. Gopal and others, "Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ Instruction", Intel, 2009).
//
//go:noescape
func foldBy(f *factors, crc uint32, b []byte) uint32

// factors holds the multipliers that move 16 bytes to a later position: one for the first 8 bytes and one for the last
// 8. fold_amd64.s knows the offsets of the fields.
type factors struct {
	by256, by192, by128, by64 [2]uint64
	lanes                     [4][2]uint64 // move each 16 of 64 bytes to the last 16; the last lane has factors 0
}

var theFactors = factors{moved(256), moved(192), moved(128), moved(64), [4][2]uint64{moved(48), moved(32), moved(16)}}

// moved returns the two multipliers that move 16 bytes of data by n bytes. The first 8 bytes need the multiplier
// x^(8n+64), and the last 8 bytes need x^(8n). Function power returns a 32-bit value in the low half of a 64-bit word. In
// the bit order of the checksum, the low half has the terms from x^32 on: the value counts as if multiplied by x^32.
// So both exponents are 32 less.
func moved(n int) [2]uint64 { return [2]uint64{power(8*n + 32), power(8*n - 32)} }

// power returns x^n modulo the polynomial, in the bit order of the checksum and shifted left by one bit.
func power(n int) uint64 {
	p := uint32(1 << 31)
	for range n {
		p = p>>1 ^ p&1*crc32.Castagnoli
	}
	return uint64(p) << 1
}
