//go:build !amd64

package crc32c

const (
	wide    = false
	wideMin = 0
)

func fold(uint32, []byte) uint32 { panic("crc32c: no fold on this processor") }
