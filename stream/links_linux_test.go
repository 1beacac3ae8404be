package stream

import (
	"testing"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

var systemLinks = []linkType{{"xdp", xdp}}

// mtuLinks are the links whose speed the targets name.
var mtuLinks = []linkType{
	{"xdp", xdp},
	{"xdp MTU 9000", func(t testing.TB) (a, b *dat.IA) { return xdpWith(t, lab.Options{MTU: 9000}) }},
}

// xdp returns adapters over AF_XDP in two network namespaces.
func xdp(t testing.TB) (a, b *dat.IA) { return xdpWith(t, lab.Options{}) }

func xdpWith(t testing.TB, o lab.Options) (a, b *dat.IA) {
	labtest.RequireXDP(t)
	l, err := lab.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return adapters(t, func(side int) (ia *dat.IA, err error) {
		err = l.Do(lab.Side(side), func() (err error) {
			ia, err = dat.Open("xdp:"+lab.Interface, options)
			return err
		})
		return ia, err
	})
}
