package dat

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// sameHost is two adapters of one host: AF_XDP, and kernel UDP at an address of the same host.
type sameHost struct {
	*lab.Lab
	client netip.Addr
}

const samePort = 17490

func (s sameHost) open(side int, o Options) (ia *IA, err error) {
	name := "xdp:" + lab.Interface
	if o.PeerPort = samePort; side == 0 {
		name, o.Port, o.PeerPort = "udp:"+s.client.String(), samePort, DefaultPort
	}
	err = s.Do(lab.A, func() (err error) {
		ia, err = Open(name, sharedKeys.complete(o))
		return err
	})
	return ia, err
}

func (s sameHost) addr(side int) netip.Addr {
	if side == 0 {
		return s.client
	}
	return lab.A.Addr4()
}

func (s sameHost) absent() netip.Addr { return netip.MustParseAddr("10.73.0.99") }

// A program on the host of an AF_XDP server reaches it over kernel UDP, from its address or from loopback, and is reached
// by it.
func TestSameHost(t *testing.T) {
	labtest.RequireXDP(t)
	for _, client := range []string{"10.73.0.1", "127.0.0.1"} {
		for i := range 2 { // a host that listens itself would serve its own request
			n := sameHost{labtest.New(t, lab.Options{}), netip.MustParseAddr(client)}
			hosts := [2]*host{newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})}
			server := hosts[i]
			server.listen(testQual, 4)
			x, y := hosts[1-i].pointWith(nil, 4<<20, 64), server.pointWith(nil, 4<<20, 64)
			join(x, y)
			fillRandom(x.mem, 3)
			ok(t, x.PostRDMAWrite(x.seg(0, len(x.mem)), 1, y.lmr.Remote(0, len(y.mem)), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, len(x.mem))
			y.memoryBarrier()
			same(t, y.mem, x.mem)
		}
	}
}
