package xdp

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// memory is the consumers' memory of a device, from which packets can be sent in place. It is mapped once for the
// consumers, and once more in the UMEM of every queue, after the frames, so that tx descriptors can refer to it.
type memory []byte

// spares keeps the mappings of closed devices for reuse, indexed by the number of bits of their size. The pages of a
// mapping are released, but the mapping is never unmapped: a consumer that still reads from it gets zeros and not a
// fault. Sizes are powers of two, so that a mapping fits many devices. A new mapping is made only if there is no spare
// mapping of its size, so the number of mappings is limited.
var spares struct {
	sync.Mutex
	of [bits.UintSize][]memory
}

// newMemory maps at least n bytes, in whole pages. It returns nil for n = 0.
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

// recycle frees the pages and keeps the mapping for another device.
func (m memory) recycle() error {
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

// mapUmem maps n bytes of frames, followed by the consumers' memory. A forked process has no such mapping: the kernel
// would copy all frames at each fork, because it has pinned them.
func mapUmem(n int, m memory) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n+len(m), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes for frames: %w", n+len(m), err)
	}
	_ = unix.Madvise(mem[:n], unix.MADV_HUGEPAGE) // huge pages cause fewer TLB misses, where available
	if m != nil {
		if err := mapAgain(m, mem[n:]); err != nil {
			return nil, errors.Join(fmt.Errorf("mremap of %d bytes of memory: %w", len(m), err), unix.Munmap(mem))
		}
	}
	_ = unix.Madvise(mem, unix.MADV_DONTFORK) // otherwise only a fork is slower
	return mem, nil
}
