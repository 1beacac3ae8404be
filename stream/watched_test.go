package stream

import (
	"io"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

// TestAgentOfOneStream: an event of a stream whose bytes wait for room makes the stack look at no other such stream. The
// peer of the other stream gives no credit; here, a held lock shows whether its stream is looked at.
func TestAgentOfOneStream(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	const size = 2*minRing + 1 // more than fits into the ring of the peer before it reads
	stuck, peer := newPair(t, a, b)
	x, y := newPair(t, a, b)
	for _, c := range []*Conn{stuck, x} {
		if _, err := c.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		if !c.watched {
			t.Error("no bytes wait")
		}
		c.mu.Unlock()
	}
	stuck.mu.Lock()
	_, err := peer.Read(make([]byte, minRing)) // gives a credit, an event of the stream
	if err == nil {
		_, err = io.ReadFull(y, make([]byte, size))
	}
	stuck.mu.Unlock()
	if err == nil {
		_, err = io.ReadFull(peer, make([]byte, size-minRing))
	}
	if err != nil {
		t.Error(err)
	}
}
