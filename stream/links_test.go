package stream

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
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

// eachLink runs a test over every link that this host has.
func eachLink(t *testing.T, f func(t *testing.T, a, b *dat.IA)) {
	for _, l := range links {
		t.Run(l.name, func(t *testing.T) {
			a, b := l.make(t)
			f(t, a, b)
		})
	}
}

// options are those of all adapters of the tests.
var options = dat.Options{AsyncQLen: dat.NoAsyncEVD}

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

var nextPort atomic.Uint32

// udp returns two adapters of the loopback interface, at a port that is free.
func udp(t testing.TB) (a, b *dat.IA) {
	return adapters(t, func(side int) (ia *dat.IA, err error) {
		o := options
		if side == 0 {
			nextPort.Add(1)
		}
		for range 1000 {
			o.Port = uint16(30000 + nextPort.Load()%10000)
			if ia, err = dat.Open(fmt.Sprintf("udp:127.0.0.%d", side+1), o); !errors.Is(err, link.ErrBusy) {
				return ia, err
			}
			if side == 0 {
				nextPort.Add(1)
			}
		}
		return ia, err
	})
}
