package workload

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
)

// TestMemoryGoesBack: the kernel gets the buffers of a row back when the row is over.
func TestMemoryGoesBack(t *testing.T) {
	a, err := OpenAdapter(&Host{}, plan.Station{IA: "udp:127.0.0.25", Port: 17679})
	if err != nil {
		t.Fatal(err)
	}
	before := residentBytes(t)
	m, err := newMemory(a, plan.MaxSize, 1, shape{numSources: 4})
	if err != nil {
		t.Fatal(err)
	}
	unused := residentBytes(t)
	for i := 0; i < len(m.bytes); i += cacheLine {
		m.bytes[i] = 1
	}
	used := residentBytes(t)
	if err := errors.Join(m.free(), a.Close()); err != nil {
		t.Fatal(err)
	}
	if after := residentBytes(t); unused-before > 32<<20 || used-before < 240<<20 || after-before > 32<<20 {
		t.Errorf("MiB resident beyond those before: unused %d, used %d, afterwards %d", (unused-before)>>20, (used-before)>>20, (after-before)>>20)
	}
}

// residentBytes returns the resident memory of this process in bytes.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestHeap: the heap of a row with --churn has the requested size. The garbage collector runs all the time. The method
// free frees the whole heap.
func TestHeap(t *testing.T) {
	const (
		size  = 16 << 20
		noise = size / 16 // meanwhile the runtime frees memory of earlier tests
	)
	live := func() (m runtime.MemStats) {
		runtime.ReadMemStats(&m)
		return m
	}
	runtime.GC()
	before := live()
	h := newHeap(size)
	for !h.filled.Load() {
		runtime.Gosched()
	}
	filled := live()
	if got := int64(filled.HeapAlloc) - int64(before.HeapAlloc); got < size-noise {
		t.Errorf("%d bytes are live, want %d", got, size)
	}
	for begin := time.Now(); live().NumGC < filled.NumGC+3; runtime.Gosched() {
		if time.Since(begin) > time.Minute {
			t.Fatal("the collector rests")
		}
	}
	h.free()
	if got := live().HeapAlloc; got > before.HeapAlloc+size/2 {
		t.Errorf("%d bytes are live afterwards", got-before.HeapAlloc)
	}
}
