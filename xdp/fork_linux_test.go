package xdp

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

// Neither the frames nor the rings of a socket are mapped in a forked process.
func TestMappingsAreNotForked(t *testing.T) {
	s := newPair(t, pairOptions{mtu: 1500}).ends[lab.A]
	if len(s.maps) != 5 {
		t.Errorf("%d mappings, want the frames and four rings", len(s.maps))
	}
	for i, m := range s.maps {
		if flags := mappingFlags(t, umemAddr(m)); !slices.Contains(flags, "dc") { // VM_DONTCOPY
			t.Errorf("mapping %d has the flags %v, want dc", i, flags)
		}
	}
}

// mappingFlags returns the flags of the mapping at an address, as smaps shows them.
func mappingFlags(t *testing.T, addr uint64) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	var start, end uint64
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "%x-%x ", &start, &end) // other lines have no range
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && addr >= start && addr < end {
			return strings.Fields(flags)
		}
	}
	t.Fatalf("no mapping at %#x", addr)
	return nil
}
