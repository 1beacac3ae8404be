package main

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/dat"
)

// TestQualifierNamesPort: a qualifier of createAny names the port of the adapter, unless that is the default port.
// Qualifiers of programs name no port.
func TestQualifierNamesPort(t *testing.T) {
	ia, err := dat.Open("udp:"+netip.AddrFrom4([4]byte{127, 0, 77, 1}).String()+" port=40404", dat.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer ia.Close()
	evd, err := ia.CreateEVD(8, nil, dat.EVDCR)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[dat.ConnQual]bool{}
	for range 3 {
		psp, err := createAny(ia, evd, dat.PSPConsumer)
		if err != nil {
			t.Fatal(err)
		}
		if q := psp.Qual(); portOf(uint64(q)) != 40404 || seen[q] {
			t.Errorf("qualifier %#x", q)
		}
		seen[psp.Qual()] = true
	}
	for _, q := range []uint64{0, 49152, 1<<32 - 1, 40404 << 32, 1<<64 - 1} {
		if p := portOf(q); p != 0 {
			t.Errorf("qualifier %#x names port %d", q, p)
		}
	}
}
