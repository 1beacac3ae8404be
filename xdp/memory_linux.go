package xdp

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// memory is what a device's consumers keep their data in. It is mapped once for them and once more behind the frames
// of every queue, so that a packet can name it.
type memory []byte

// spares are mappings whose device is closed, by size. None is ever taken away, so that a consumer which still looks
// into one reads something and does not fault; their pages are given back.
var spares struct {
	sync.Mutex
	of map[int][]memory
}

// newMemory maps at least n bytes, whole pages; nil for none.
func newMemory(n int) (memory, error) {
	if n == 0 {
		return nil, nil
	}
	n = (n + os.Getpagesize() - 1) &^ (os.Getpagesize() - 1)
	spares.Lock()
	defer spares.Unlock()
	if have := spares.of[n]; len(have) > 0 {
		spares.of[n] = have[:len(have)-1]
		return have[len(have)-1], nil
	}
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes for memory: %w", n, err)
	}
	return m, nil
}

// release keeps the mapping for another device, without its pages.
func (m memory) release() error {
	if m == nil {
		return nil
	}
	err := unix.Madvise(m, unix.MADV_REMOVE)
	spares.Lock()
	defer spares.Unlock()
	if spares.of == nil {
		spares.of = make(map[int][]memory)
	}
	spares.of[len(m)] = append(spares.of[len(m)], m)
	return err
}

// mapUmem maps n bytes of frames with the memory behind them.
func mapUmem(n int, m memory) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n+len(m), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes for frames: %w", n+len(m), err)
	}
	_ = unix.Madvise(mem[:n], unix.MADV_HUGEPAGE) // fewer TLB misses where the kernel can
	if m != nil {
		if err := mapAgain(m, mem[n:]); err != nil {
			return nil, errors.Join(fmt.Errorf("mremap of %d bytes of memory: %w", len(m), err), unix.Munmap(mem))
		}
	}
	return mem, nil
}
