// Package speck implements the block cipher SPECK32/64 (Beaulieu et al., 2013), a keyed permutation of 32 bits. It
// encrypts a table index and a generation into a key that an attacker cannot guess. Decryption returns the index, so a
// lookup needs no map.
package speck

import "math/bits"

const rounds = 22

// Key is an expanded key. It never changes, and any goroutine may use it.
type Key [rounds]uint16

// New expands a 64-bit key.
func New(key uint64) *Key {
	var k Key
	l := [3]uint16{uint16(key >> 16), uint16(key >> 32), uint16(key >> 48)}
	k[0] = uint16(key)
	for i := range rounds - 1 {
		l[i%3] = (k[i] + bits.RotateLeft16(l[i%3], -7)) ^ uint16(i)
		k[i+1] = bits.RotateLeft16(k[i], 2) ^ l[i%3]
	}
	return &k
}

// Encrypt permutes v.
func (k *Key) Encrypt(v uint32) uint32 {
	x, y := uint16(v>>16), uint16(v)
	for _, rk := range k {
		x = (bits.RotateLeft16(x, -7) + y) ^ rk
		y = bits.RotateLeft16(y, 2) ^ x
	}
	return uint32(x)<<16 | uint32(y)
}

// Decrypt undoes Encrypt.
func (k *Key) Decrypt(v uint32) uint32 {
	x, y := uint16(v>>16), uint16(v)
	for i := rounds - 1; i >= 0; i-- {
		y = bits.RotateLeft16(y^x, -2)
		x = bits.RotateLeft16((x^k[i])-y, 7)
	}
	return uint32(x)<<16 | uint32(y)
}
