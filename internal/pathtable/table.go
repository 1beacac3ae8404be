// Package pathtable assigns numbers to the paths of a link.
//
// A link.Path is an index and a generation. The number of a removed path stays invalid, even after its index is used
// again.
//
// Get takes no lock, and may be called while other goroutines call any method.
package pathtable

import (
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
)

const (
	indexBits = 18
	indexMask = 1<<indexBits - 1
	chunkBits = 8
	chunkSize = 1 << chunkBits
)

// Max is the largest number of paths in a table. Index 0 is link.PathReply.
const Max = 1<<indexBits - 1

// slot is one entry of the table. The path number is stored before the value. A reader that finds a value therefore
// also finds the number of this value or of a later one.
type slot[T any] struct {
	value atomic.Pointer[T]
	path  atomic.Uint32 // the number of value; while value is nil, the number for the next one
}

type chunk[T any] [chunkSize]slot[T]

// Table maps a link.Path to a T. It grows by chunks that never move, and never shrinks. The zero Table is empty and
// ready to use.
type Table[T any] struct {
	chunks [(Max + 1) / chunkSize]atomic.Pointer[chunk[T]]

	mu   sync.Mutex // guards all changes
	used uint32     // number of slots used so far
	free []uint32   // used slots that are empty again
}

// Get returns the value of a path; nil if the path was never added or was removed.
func (t *Table[T]) Get(p link.Path) *T {
	c := t.chunks[uint32(p)&indexMask>>chunkBits].Load()
	if c == nil {
		return nil
	}
	s := &c[p&(chunkSize-1)]
	value := s.value.Load()
	if value == nil || s.path.Load() != uint32(p) {
		return nil
	}
	return value
}

// Add adds a value, which must not be nil, and returns its path. The error is link.ErrTooManyPaths.
func (t *Table[T]) Add(value *T) (link.Path, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else if t.used < Max {
		t.used++
		i = t.used
	} else {
		return 0, link.ErrTooManyPaths
	}
	at := &t.chunks[i>>chunkBits]
	if at.Load() == nil {
		at.Store(new(chunk[T]))
	}
	s := &at.Load()[i&(chunkSize-1)]
	p := s.path.Load()&^indexMask | i
	s.path.Store(p)
	s.value.Store(value)
	return link.Path(p), nil
}

// Remove removes a path and returns its value; nil if it is not in the table.
func (t *Table[T]) Remove(p link.Path) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	value := t.Get(p)
	if value == nil {
		return nil
	}
	i := uint32(p) & indexMask
	s := &t.chunks[i>>chunkBits].Load()[i&(chunkSize-1)]
	s.value.Store(nil)
	s.path.Store(uint32(p) + 1<<indexBits)
	t.free = append(t.free, i)
	return value
}

// Len returns the number of paths in the table.
func (t *Table[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int(t.used) - len(t.free)
}

// Drain removes every path and calls f with its value.
func (t *Table[T]) Drain(f func(*T)) {
	for i := range t.chunks {
		c := t.chunks[i].Load()
		for j := 0; c != nil && j < chunkSize; j++ {
			if value := t.Remove(link.Path(c[j].path.Load())); value != nil {
				f(value)
			}
		}
	}
}
