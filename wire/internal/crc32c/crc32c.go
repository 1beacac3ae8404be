// Package crc32c sums packets: CRC-32 with the Castagnoli polynomial (RFC 3385), as SCTP, iSCSI and MPA do. Where the
// processor multiplies polynomials in registers of 512 bits it takes a third of the time of hash/crc32, which it uses
// elsewhere and for short input.
//
// Ordering: none. Ownership: input is only read, during the call. Threading: any goroutine may call.
package crc32c

import "hash/crc32"

var table = crc32.MakeTable(crc32.Castagnoli)

// Update extends the checksum crc, 0 of no bytes, by b.
func Update(crc uint32, b []byte) uint32 {
	if wide && len(b) >= wideMin {
		return fold(crc, b)
	}
	return crc32.Update(crc, table, b)
}
