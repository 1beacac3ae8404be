package stream

import (
	"testing"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

var systemLinks = []linkType{{"xdp", xdp}}

// xdp returns adapters over AF_XDP in two network namespaces.
func xdp(t testing.TB) (a, b *dat.IA) {
	labtest.RequireXDP(t)
	l, err := lab.New(lab.Options{})
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
