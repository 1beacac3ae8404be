package stream

import "testing"

// TestDiscardAfterClose: Close has freed the rings, so a goroutine that still discards bytes must not free one again.
func TestDiscardAfterClose(t *testing.T) {
	c := &Conn{life: closing}
	c.in.first.buf, c.in.second = make([]byte, 2*minRing), ring{buf: make([]byte, 4*minRing), base: 1000}
	c.in.received = 2000
	c.Discard(1500) // beyond the first ring
	if !c.in.growing() || c.in.consumed != 0 {
		t.Error("bytes of a closed stream were consumed")
	}
}
