// Package crc32c computes CRC-32 with the Castagnoli polynomial (RFC 3385), as SCTP, iSCSI and MPA use it. If the
// processor has carry-less multiplication in 512-bit registers, the package takes a third of the time of hash/crc32. On
// other processors, and for short input, the package calls hash/crc32.
//
// Ordering: none. Ownership: the package reads its input only during the call. Threading: any goroutine may call.
package crc32c

import "hash/crc32"

var table = crc32.MakeTable(crc32.Castagnoli)

// Update updates checksum crc with the bytes in b. The checksum of no bytes is 0.
func Update(crc uint32, b []byte) uint32 {
	if wide && len(b) >= wideMin {
		return fold(crc, b)
	}
	return crc32.Update(crc, table, b)
}
