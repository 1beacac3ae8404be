package dat

import (
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

// An adapter over AF_XDP and one over UDP can connect to each other in both directions, even with different ports.
func TestPortsOfAFXDPAndUDP(t *testing.T) {
	x := newXDP(t).(xdpNet)
	a := newHost(t, x, 0, Options{PeerPort: 17600})
	a.listen(testQual, 8)
	var ia *IA
	ok(t, x.Do(lab.B, func() (err error) {
		ia, err = Open("udp:"+lab.B.Addr4().String(), Options{Port: 17600, PeerPort: DefaultPort})
		return err
	}))
	t.Cleanup(func() { _ = ia.Close() })
	b := &host{t: t, ia: ia, addr: lab.B.Addr4(), pz: must(ia.CreatePZ())(t)}
	proves(pair(b, a, nil))
	b.listen(testQual, 8)
	proves(pair(a, b, nil))
	for _, h := range []*host{a, b} { // packets that are sent without a connection use the right port too
		to := b
		if h == b {
			to = a
		}
		p := h.point(nil)
		ok(t, p.Connect(to.addr, testQual+1, patience, nil))
		p.expect(EventNonPeerRejected)
	}
}
