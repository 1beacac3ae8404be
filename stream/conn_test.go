package stream

import (
	"context"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"github.com/datxdp/datxdp/dat"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(victimAddress); address != "" {
		beVictim(address)
	}
	goleak.VerifyTestMain(drained{m})
}

// drained runs the tests, and closes the adapters that would stay open for further dials.
type drained struct{ *testing.M }

func (d drained) Run() int {
	if c, err := net.ListenPacket("udp", "127.0.0.1:0"); err == nil {
		_ = c.Close() // now the runtime has opened its poller, which it keeps: tests count open files
	}
	defer func() { _ = Drain(context.Background()) }()
	return d.M.Run()
}

// pair makes a stream between two adapters.
func pair(a, b *dat.IA) (x, y *Conn, err error) {
	lc := ListenConfig{IA: b}
	l, err := lc.Listen(context.Background(), 7000)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			accepted <- c
		}
		close(accepted)
	}()
	d := Dialer{IA: a}
	if x, err = d.dial(context.Background(), l.Addr().String()); err != nil {
		return nil, nil, err
	}
	return x, (<-accepted).(*Conn), nil
}

// newPair is pair for a test, whose end closes both.
func newPair(t testing.TB, a, b *dat.IA) (x, y *Conn) {
	t.Helper()
	x, y, err := pair(a, b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []*Conn{x, y} {
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	})
	return x, y
}

// TestConn: a Conn does what every net.Conn has to do.
func TestConn(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
			x, y, err := pair(a, b)
			if err != nil {
				return nil, nil, nil, err
			}
			return x, y, func() { _, _ = x.Close(), y.Close() }, nil
		})
	})
}
