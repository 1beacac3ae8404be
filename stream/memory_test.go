//go:build !race

package stream

import (
	"runtime"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

// maxIdle is the memory in bytes that an idle end of a stream may take.
const maxIdle = 16 << 10

// TestIdleMemory measures all memory of idle streams that have been used before: rings, objects of package dat, and the
// state of the protocol.
func TestIdleMemory(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	a, b := sim(t, simlink.Config{})
	keepA, keepB := newPair(t, a, b)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range n {
		x, y := newPair(t, a, b)
		write(t, x, "a request")
		if _, err := y.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	tidyAll(keepA, keepB)
	each := (heap() - before) / uint64(2*n)
	t.Logf("%d streams: %d bytes an end", n, each)
	if each > maxIdle {
		t.Errorf("an idle end takes %d bytes; the limit is %d", each, maxIdle)
	}
	runtime.KeepAlive(keepA)
}
