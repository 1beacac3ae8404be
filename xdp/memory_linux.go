package xdp

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// memory is what a device's consumers keep their data in. It is mapped once for them and once more behind the frames
// of every queue, so that a packet can name it.
type memory []byte

// spares are mappings whose device is closed, by the bits of their size. None is ever taken away, so that a consumer
// which still looks into one reads something and does not fault; their pages are given back. Sizes are powers of two,
// so that devices with ever other sizes find one: there are no more than were in use at once.
var spares struct {
	sync.Mutex
	of [bits.UintSize][]memory
}

// newMemory maps at least n bytes, whole pages; nil for none.
func newMemory(n int) (memory, error) {
	if n == 0 {
		return nil, nil
	}
	n = (n + os.Getpagesize() - 1) &^ (os.Getpagesize() - 1)
	spares.Lock()
	defer spares.Unlock()
	class := bits.Len(uint(n - 1))
	if have := spares.of[class]; len(have) > 0 {
		spares.of[class] = have[:len(have)-1]
		return have[len(have)-1][:n], nil
	}
	m, err := unix.Mmap(-1, 0, 1<<class, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes for memory: %w", n, err)
	}
	return m[:n], nil
}

// release keeps the mapping for another device, without its pages.
func (m memory) release() error {
	if m == nil {
		return nil
	}
	err := unix.Madvise(m, unix.MADV_REMOVE)
	spares.Lock()
	defer spares.Unlock()
	class := bits.Len(uint(cap(m) - 1))
	spares.of[class] = append(spares.of[class], m)
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
