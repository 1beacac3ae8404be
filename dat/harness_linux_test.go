package dat

import (
	"net/netip"
	"sync"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

var systemTransports = []transport{{"xdp", newXDP}}

// xdpNet is AF_XDP between two network namespaces.
type xdpNet struct{ *lab.Lab }

// theLab is shared by all tests, because making a lab takes longer than most tests.
var theLab struct {
	once sync.Once
	lab  *lab.Lab
	err  error
}

func sharedLab(t testing.TB) *lab.Lab {
	labtest.RequireXDP(t)
	theLab.once.Do(func() { theLab.lab, theLab.err = lab.New(lab.Options{}) })
	if theLab.err != nil {
		t.Fatal(theLab.err)
	}
	return theLab.lab
}

func closeLab() error {
	if theLab.lab == nil {
		return nil
	}
	return theLab.lab.Close()
}

func newXDP(t testing.TB) network { return xdpNet{sharedLab(t)} }

func (x xdpNet) open(side int, o Options) (*IA, error) {
	warmDevices.ready(side, o, func() (*IA, error) { return x.openAs(side, x.device(side), Options{}) })
	return x.openAs(side, x.device(side), o)
}

func (x xdpNet) device(int) string { return "xdp:" + lab.Interface }

func (x xdpNet) openAs(side int, name string, o Options) (ia *IA, err error) {
	err = x.Do(lab.Side(side), func() (err error) {
		ia, err = Open(name, sharedKeys.complete(o))
		return err
	})
	return ia, err
}

func (x xdpNet) addr(side int) netip.Addr { return lab.Side(side).Addr4() }
func (x xdpNet) absent() netip.Addr       { return netip.AddrFrom4([4]byte{10, 73, 0, 77}) }
