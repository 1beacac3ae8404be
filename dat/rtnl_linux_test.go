package dat

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// While another user holds the kernel's lock of network settings (RTNL), Accept and Reject answer a requester to which no
// path is known, and other calls of the IA work. So does Connect to a known neighbour. The kernel does not answer a request
// to confirm the neighbours, and requests for routes wait behind it.
func TestAttack30AnswersWhileRTNLIsHeld(t *testing.T) {
	labtest.RequireXDP(t)
	n := xdpNet{labtest.New(t, lab.Options{})}
	for _, side := range []lab.Side{lab.A, lab.B} {
		peer := side.Peer()
		for _, addr := range []netip.Addr{peer.Addr4(), peer.Addr6()} {
			ok(t, n.Do(side, func() error { return labtest.SetStaleNeighbour(lab.Interface, addr, peer.MAC()) }))
		}
	}
	a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
	b.listen(testQual, 8)
	points := [2][2]*point{{a.point(nil), b.point(nil)}, {a.point(nil), b.point(nil)}}
	hanging := time.AfterFunc(patience/2, labtest.HoldRTNL(t))
	for i, addr := range []netip.Addr{lab.B.Addr4(), lab.B.Addr6()} {
		b.addr = addr
		x, y := points[i][0], points[i][1]
		x.dial(b, nil)
		ok(t, b.request(t).Reject(nil))
		x.expect(EventPeerRejected)
		ok(t, x.Reset())
		x.dial(b, nil)
		ok(t, b.request(t).Accept(y.EP, nil))
		x.expect(EventEstablished)
		y.expect(EventEstablished)
	}
	ok(t, must(b.ia.CreateEVD(8, nil, EVDDTO))(t).Free())
	if !hanging.Stop() {
		t.Error("the calls waited for the lock")
	}
}
