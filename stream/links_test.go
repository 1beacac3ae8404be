package stream

import (
	"math"
	"net"
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

// linkType makes two adapters that are connected.
type linkType struct {
	name string
	make func(testing.TB) (a, b *dat.IA)
}

var links = append([]linkType{
	{"sim", func(t testing.TB) (a, b *dat.IA) { return sim(t, simlink.Config{}) }},
	{"lossy sim", func(t testing.TB) (a, b *dat.IA) { return sim(t, simlink.Config{Loss: 0.01}) }},
	{"udp", udp},
}, systemLinks...)

// eachLink runs a test over every link that this host has. The test must leave nothing behind: no frame when it ends, and
// no goroutine and no descriptor when its adapters are closed.
func eachLink(t *testing.T, f func(t *testing.T, a, b *dat.IA)) {
	for _, l := range links {
		t.Run(l.name, func(t *testing.T) {
			before := settled()
			t.Cleanup(func() { before.await(t) }) // after the adapters are closed
			a, b := l.make(t)
			f(t, a, b)
			counts{goroutines: math.MaxInt, files: math.MaxInt, stacks: math.MaxInt, frames: before.frames}.await(t)
		})
	}
}

// options are those of all adapters of the tests.
var options = dat.Options{AsyncQLen: dat.NoAsyncEVD, Wrap: lend}

// adapters returns the two adapters that open makes, which the end of the test closes.
func adapters(t testing.TB, open func(side int) (*dat.IA, error)) (a, b *dat.IA) {
	t.Helper()
	var all [2]*dat.IA
	for side := range all {
		ia, err := open(side)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ia.Close() })
		all[side] = ia
	}
	return all[0], all[1]
}

func sim(t testing.TB, cfg simlink.Config) (a, b *dat.IA) {
	cfg.Immediate = true
	n := simlink.New(cfg)
	return adapters(t, func(side int) (*dat.IA, error) {
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(side + 1)})
		return dat.OpenLink(options, n.Link(netip.AddrPortFrom(addr, dat.DefaultPort)))
	})
}

// udp returns two adapters of the loopback interface, at a UDP port that is free.
func udp(t testing.TB) (a, b *dat.IA) {
	o := options
	return adapters(t, func(side int) (*dat.IA, error) {
		addr := netip.AddrFrom4([4]byte{127, 0, 0, byte(side + 1)})
		if side == 0 {
			c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
			if err != nil {
				return nil, err
			}
			o.Port = c.LocalAddr().(*net.UDPAddr).AddrPort().Port()
			if err := c.Close(); err != nil {
				return nil, err
			}
		}
		return dat.Open("udp:"+addr.String(), o)
	})
}
