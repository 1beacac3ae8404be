package main

import (
	"errors"
	"sync/atomic"

	"github.com/datxdp/datxdp/dat"
)

// A process that does not have the default UDP port returns qualifiers from dat_psp_create_any that name its port. So a
// program that passes such a qualifier to another process, and needs no more to connect, reaches the process that has
// it, and not another process of the host. The upper half of such a qualifier is portMark and the port.
const (
	portMark   = 0x6478 << 48
	markMask   = 0xffff << 48
	portShift  = 32
	firstAny   = 49152 // the lower half counts from here, as dat.CreatePSPAny does
	numAny     = 16384
	portDigits = 1<<16 - 1
)

// tried counts the qualifiers that createAny has tried.
var tried atomic.Uint32

// createAny listens on a free qualifier.
func createAny(ia *dat.IA, evd *dat.EVD, flags dat.PSPFlags) (*dat.PSP, error) {
	attr, err := ia.Query()
	if err != nil || attr.Port == dat.DefaultPort {
		return ia.CreatePSPAny(evd, flags)
	}
	for range numAny {
		qual := dat.ConnQual(portMark | uint64(attr.Port)<<portShift | uint64(firstAny+tried.Add(1)%numAny))
		psp, err := ia.CreatePSP(qual, evd, flags)
		if !errors.Is(err, dat.ErrConnQualInUse) {
			return psp, err
		}
	}
	return nil, dat.ErrConnQualUnavailable
}

// portOf returns the UDP port that a qualifier names, or 0.
func portOf(qual uint64) uint16 {
	if qual&markMask != portMark {
		return 0
	}
	return uint16(qual >> portShift & portDigits)
}
