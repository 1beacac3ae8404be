package dat

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// mixed is a network whose end A is AF_XDP in generic mode, and whose end B is kernel UDP with offload.
type mixed struct{ *lab.Lab }

func (m mixed) open(side int, o Options) (ia *IA, err error) {
	name := "udp:" + lab.B.Addr4().String()
	if lab.Side(side) == lab.A {
		name = "xdp:" + lab.Interface + ",generic"
	}
	err = m.Do(lab.Side(side), func() (err error) {
		ia, err = Open(name, sharedKeys.complete(o))
		return err
	})
	return ia, err
}

func (m mixed) addr(side int) netip.Addr { return lab.Side(side).Addr4() }
func (m mixed) absent() netip.Addr       { return netip.MustParseAddr("10.73.0.99") }

// A sender with offload sends single packets to a receiver in generic mode, which would get a group as one packet,
// whichever end has connected.
func TestGenericModeGetsSinglePackets(t *testing.T) {
	labtest.RequireXDP(t)
	n := mixed{labtest.New(t, lab.Options{})}
	hosts := [2]*host{newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})}
	for _, h := range hosts {
		h.listen(testQual, 4)
	}
	for _, server := range []lab.Side{lab.A, lab.B} {
		x, y := hosts[lab.B].pointWith(nil, 4<<20, 64), hosts[lab.A].pointWith(nil, 4<<20, 64)
		if server == lab.A {
			join(x, y)
		} else {
			join(y, x)
		}
		fillRandom(x.mem, 3)
		ok(t, x.PostRDMAWrite(x.seg(0, len(x.mem)), 1, y.lmr.Remote(0, len(y.mem)), 0))
		x.done(x.request, 1, DTORDMAWrite, DTOSuccess, len(x.mem))
		y.memoryBarrier()
		same(t, y.mem, x.mem)
		if attr := must(hosts[lab.B].ia.Query())(t); attr.Offload == "" {
			t.Skip("this kernel has no offload")
		}
		if s := must(hosts[lab.A].ia.Stats())(t); s.BadChecksum > 0 {
			t.Errorf("server %v: %d packets with a wrong checksum", server, s.BadChecksum)
		}
	}
}
