package stream

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// TestDialSeveralAddresses: a dial tries each address, with a share of the time, and the error names each.
func TestDialSeveralAddresses(t *testing.T) {
	all := hosts(t, 2)
	l := listen(t, ListenConfig{IA: all[0]})
	d := Dialer{IA: all[1], Timeout: 3 * time.Second}
	s, err := use(adapter{ia: all[1]})
	check(t, err)
	defer s.release()
	at := func(host string) *net.TCPAddr { return &net.TCPAddr{IP: net.ParseIP(host), Port: l.addr.Port} }
	good := l.Addr().(*net.TCPAddr)
	c, err := d.connectAny(t.Context(), s, []*net.TCPAddr{at("ff02::1"), good})
	check(t, err)
	c.reset()
	closed := &net.TCPAddr{IP: good.IP, Port: 1}
	_, err = d.connectAny(t.Context(), s, []*net.TCPAddr{closed, at("10.0.99.1"), at("ff02::1")})
	for _, want := range []string{closed.String(), "no service listens", "10.0.99.1", "ff02::1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not have %q", err, want)
		}
	}
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("error %v", err)
	}
}

// TestShare: the attempts share the time as those of net.Dialer do.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		total time.Duration
		n     int
		want  time.Duration
	}{
		{20 * time.Second, 2, 10 * time.Second},
		{20 * time.Second, 1, 20 * time.Second},
		{3 * time.Second, 3, minShare},
		{time.Second, 3, time.Second},
	} {
		if got := share(context.Background(), time.Now().Add(c.total), c.n); got > c.want || got < c.want-100*time.Millisecond {
			t.Errorf("%v for %d addresses: %v, want %v", c.total, c.n, got, c.want)
		}
	}
}

// TestResolve: hosts that stand for the local system are the adapter's address, and a network chooses a family.
func TestResolve(t *testing.T) {
	a, _ := sim(t, simlink.Config{})
	s, err := use(adapter{ia: a})
	check(t, err)
	defer s.release()
	for _, c := range []struct{ network, address, want string }{
		{"tcp", ":80", "10.0.0.1:80"},
		{"tcp", "0.0.0.0:80", "10.0.0.1:80"},
		{"tcp", "[::]:80", "10.0.0.1:80"},
		{"tcp", "[::ffff:192.0.2.1]:80", "192.0.2.1:80"},
		{"tcp6", "[2001:db8::1]:80", "[2001:db8::1]:80"},
	} {
		all, err := s.resolve(t.Context(), c.network, c.address)
		if err != nil || len(all) != 1 || all[0].String() != c.want {
			t.Errorf("%s %s: %v, %v; want %s", c.network, c.address, all, err, c.want)
		}
	}
	if all, err := s.resolve(t.Context(), "tcp4", "[2001:db8::1]:80"); err == nil {
		t.Errorf("tcp4 has the addresses %v", all)
	}
}
