package dat

import (
	"runtime"
	"testing"
)

// counting is a parker that becomes ready after some looks, and starts a goroutine at one of them.
type counting struct {
	looks, last int
	start       func(look int)
}

func (c *counting) ready() bool {
	c.looks++
	c.start(c.looks)
	return c.looks >= c.last
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
	ran := 0
	c := &counting{last: 100}
	c.start = func(look int) {
		if look == begin {
			go func() { ran = c.looks }()
		}
	}
	if err := h.ia.a.park(c, forever, nil); err != nil {
		t.Fatal(err)
	}
	if ran == 0 || ran > begin+2 { // two looks at each poll
		t.Errorf("the goroutine ran at look %d, want %d at the latest", ran, begin+2)
	}
}
