package fairqueue

import (
	"net/netip"
	"testing"
)

// Thousands of peers of one network wait, and the network may hold no further buffer. The choice of the next flow must
// not look at each of them, because every packet and every posted receive makes that choice.
func TestFullNetworkIsSkipped(t *testing.T) {
	b := newBench(t, 16)
	const peers = 5000
	for id := 1; id <= peers; id++ {
		b.add(id, netip.AddrFrom4([4]byte{10, 0, byte(id >> 8), byte(id)}).String())
		b.flows[id].peer.net = b.flows[1].peer.net // one network of any size
		b.begin(id)
	}
	if b.waiting < peers-16 || b.free == 0 {
		t.Fatalf("%d of %d peers wait, %d buffers are free", b.waiting, peers, b.free)
	}
	for _, f := range b.flows {
		if f.Waits() {
			f.peer.net = nil // a look at the peer's thresholds panics
		}
	}
	if next := b.Give(); next != 0 {
		t.Errorf("flow %d is next although its network is full", next)
	}
}
