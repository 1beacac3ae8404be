package stream

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair makes a stream between two adapters.
func pair(a, b *dat.IA) (x, y net.Conn, stop func(), err error) {
	ctx := context.Background()
	lc := ListenConfig{IA: b}
	l, err := lc.Listen(ctx, 7000)
	if err != nil {
		return nil, nil, nil, err
	}
	defer l.Close()
	d := Dialer{IA: a}
	came := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		came <- c
	}()
	if x, err = d.DialContext(ctx, "", l.Addr().String()); err != nil {
		return nil, nil, nil, err
	}
	y = <-came
	return x, y, func() { x.Close(); y.Close() }, nil
}

// sim returns two adapters of a simulated network.
func sim(t testing.TB, cfg simlink.Config) (a, b *dat.IA) {
	t.Helper()
	cfg.Immediate = true
	n := simlink.New(cfg)
	open := func(i byte) *dat.IA {
		ia, err := dat.OpenLink(dat.Options{AsyncQLen: dat.NoAsyncEVD}, n.Link(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, i}), dat.DefaultPort)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ia.Close() })
		return ia
	}
	return open(1), open(2)
}

// TestConn: net.Conn as every other implementation of it has to be.
func TestConn(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) { return pair(a, b) })
}
