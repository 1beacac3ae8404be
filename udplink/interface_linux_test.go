package udplink

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

// With Options.Interface, packets leave through the interface, also if the host has a better route by another one.
func TestInterface(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	if err := labtest.AddSecond(l); err != nil {
		t.Fatal(err)
	}
	onSide(t, l, lab.A, func() error { return labtest.AddRoute(labtest.Second, lab.B.Addr4(), netip.Addr{}) })
	far := open(t, l, lab.B, lab.B.Addr4(), Options{})
	for _, device := range []string{"", lab.Interface} {
		near := open(t, l, lab.A, lab.A.Addr4(), Options{Interface: device})
		const size = 700
		before := sent(t, l, labtest.Second)
		pass(t, near, far, size)
		if got := sent(t, l, labtest.Second)-before >= size; got != (device == "") {
			t.Errorf("interface %q: the packet has left by the better route: %t", device, got)
		}
		if err := near.Close(); err != nil {
			t.Error(err)
		}
	}
}

// pass sends a packet until it has arrived. The first packets to a neighbour that is unknown may be dropped.
func pass(t *testing.T, from, to *Link, size int) {
	t.Helper()
	path := mustResolve(t, from, to.Local())
	bufs := make([]link.Buf, 1)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); to.Wait(10 * time.Millisecond) {
		if to.Recv(bufs) > 0 {
			to.Free(bufs)
			return
		}
		if from.Alloc(bufs) == 1 {
			bufs[0].Data, bufs[0].Path = bufs[0].Data[:size], path
			from.Send(bufs)
		}
	}
	t.Fatal("nothing arrives")
}

// sent returns the bytes that an interface of side A has sent.
func sent(t *testing.T, l *lab.Lab, name string) (bytes uint64) {
	t.Helper()
	onSide(t, l, lab.A, func() (err error) {
		bytes, err = labtest.Sent(name)
		return err
	})
	return bytes
}
