package workload

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/result"
)

// mapMemory returns n zero bytes. The kernel commits a page when it is first touched.
//
// System calls: mmap.
func mapMemory(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("mmap of %s of buffers: %w: ask for less of --size, --depth or --connections", result.RoughSize(float64(n)), err)
	}
	return b, nil
}

// unmapMemory returns the memory to the kernel.
//
// System calls: munmap.
func unmapMemory(b []byte) error { return unix.Munmap(b) }
