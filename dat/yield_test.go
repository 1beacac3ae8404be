package dat

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// counting is a parker that becomes ready after some looks, and starts a goroutine at one of them.
type counting struct {
	looks atomic.Int32
	last  int32
	start func(look int32)
}

func (c *counting) ready() bool {
	look := c.looks.Add(1)
	c.start(look)
	return look >= c.last
}
func (c *counting) arm(bool) {}

// token is always there: a sleep ends at once.
func (c *counting) token() <-chan struct{} {
	all := make(chan struct{})
	close(all)
	return all
}

// A goroutine that becomes runnable while another one waits and finds nothing runs before the waiter's next
// poll, on one processor too.
func TestWaiterYields(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{})
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const begin = 10
	var ran atomic.Int32
	c := &counting{last: 100}
	c.start = func(look int32) {
		if look == begin {
			go func() { ran.Store(c.looks.Load()) }()
		}
	}
	if err := h.ia.a.park(c, forever, nil); err != nil {
		t.Fatal(err)
	}
	if at := ran.Load(); at == 0 || at > begin+2 { // two looks at each poll
		t.Errorf("the goroutine ran at look %d, want %d at the latest", at, begin+2)
	}
}
