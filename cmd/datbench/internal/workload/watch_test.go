package workload

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/dat"
)

// TestProgress: packets of the peer with data, or with acknowledgements, count as progress. Packets of another peer do not,
// nor those of a connection in the other direction.
func TestProgress(t *testing.T) {
	peer := netip.MustParseAddr("10.0.0.2")
	for _, target := range []bool{false, true} {
		testProgress(t, &watch{peer: peer, target: target}, peer)
	}
}

func testProgress(t *testing.T, w *watch, peer netip.Addr) {
	row := dat.ConnInfo{Passive: w.target, Peer: peer, RecvNext: 7, SendOldest: 9}
	before := w.progress([]dat.ConnInfo{row})
	for name, change := range map[string]func(*dat.ConnInfo){
		"request": func(c *dat.ConnInfo) { c.RecvNext++ }, "acknowledgement": func(c *dat.ConnInfo) { c.SendOldest++ },
	} {
		now := row
		if change(&now); w.progress([]dat.ConnInfo{now}) == before {
			t.Errorf("%s: no progress", name)
		}
	}
	other := row
	other.Peer = netip.MustParseAddr("10.0.0.3")
	reverse := row
	reverse.Passive = !row.Passive
	if w.progress([]dat.ConnInfo{row, other, reverse}) != before {
		t.Error("packets of another connection count")
	}
}
