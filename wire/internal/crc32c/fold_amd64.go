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
// The checksum is the remainder of the input, read as a polynomial, after division by the CRC polynomial. Folding
// removes 16 bytes and adds a value with the same remainder to later bytes (exclusive or). So the remainder of the
// whole input stays the same. foldBy folds up to 256 bytes in one step. It stops when fewer than 64 bytes of the input
// are not folded yet. The folded bytes have become 16 bytes. The checksum of these 16 bytes and the bytes that are not
// folded is the checksum of the whole input (V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction", Intel, 2009).
//
//go:noescape
func foldBy(f *factors, crc uint32, b []byte) uint32

// factors holds the multipliers for folding (see foldBy). Each pair of multipliers folds 16 bytes into later bytes at a
// fixed distance: one multiplier is for the first 8 of the 16 bytes, and the other for the last 8. The assembly code in
// fold_amd64.s knows the offsets of the fields.
type factors struct {
	by256, by192, by128, by64 [2]uint64
	lanes                     [4][2]uint64 // move each 16 of 64 bytes to the last 16; the last lane has factors 0
}

var theFactors = factors{moved(256), moved(192), moved(128), moved(64), [4][2]uint64{moved(48), moved(32), moved(16)}}

// moved returns the pair of multipliers that folds 16 bytes into later bytes at a distance of n bytes. In theory the
// first 8 bytes need the multiplier x^(8n+64), and the last 8 bytes need x^(8n). But the function power returns its
// 32-bit result in the low half of a 64-bit word. The bit order of the checksum is reflected, so the low half of a word
// holds the coefficients of the high powers, from x^32 on. The word therefore stands for the result multiplied by x^32.
// To compensate for this, moved reduces both exponents by 32.
func moved(n int) [2]uint64 { return [2]uint64{power(8*n + 32), power(8*n - 32)} }

// power returns x^n modulo the polynomial, in the bit order of the checksum and shifted left by one bit.
func power(n int) uint64 {
	p := uint32(1 << 31)
	for range n {
		p = p>>1 ^ p&1*crc32.Castagnoli
	}
	return uint64(p) << 1
}
