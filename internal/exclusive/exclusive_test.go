package exclusive

import (
	"sync"
	"testing"
)

func listed() (fds []int) {
	for i := range Table() {
		if v := table[i].Load(); v != 0 {
			fds = append(fds, int(v)-1)
		}
	}
	return fds
}

// Goroutines add and remove descriptors at the same time, and none remains or is lost.
func TestAddAndRemove(t *testing.T) {
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for range 200 {
				for fd := g * 10; fd < g*10+10; fd++ {
					Add(fd)
				}
				for fd := g * 10; fd < g*10+10; fd++ {
					Remove(fd)
				}
			}
			Add(g)
		})
	}
	all.Wait()
	if n := len(listed()); n != 8 {
		t.Errorf("%d descriptors are listed, want 8", n)
	}
	for g := range 8 {
		Remove(g)
	}
	if fds := listed(); fds != nil {
		t.Errorf("descriptors %v remain", fds)
	}
}

// A full list takes no more, and Remove of an unlisted descriptor does nothing.
func TestFull(t *testing.T) {
	for fd := range Size + 1 {
		Add(fd)
	}
	Remove(Size)
	if n := len(listed()); n != Size {
		t.Errorf("%d descriptors are listed, want %d", n, Size)
	}
	for fd := range Size {
		Remove(fd)
	}
	if n := len(listed()); n != 0 {
		t.Errorf("%d descriptors remain", n)
	}
}
