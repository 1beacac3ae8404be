package workload

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/dat"
)

// TestProgress: requests and acknowledgements of the initiator count as progress. Packets of another peer do not.
func TestProgress(t *testing.T) {
	peer := netip.MustParseAddr("10.0.0.2")
	w := &watch{peer: peer}
	row := dat.ConnInfo{Passive: true, Peer: peer, RecvNext: 7, SendOldest: 9}
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
	if w.progress([]dat.ConnInfo{row, other}) != before {
		t.Error("another client's packets count")
	}
}
