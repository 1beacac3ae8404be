package stream

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// TestManyDials: many dials at once, to a service that accepts, to a port without a service and to nobody, return a
// stream or an error of one of the expected kinds each. They leave no goroutine, descriptor, connection or frame.
func TestManyDials(t *testing.T) {
	for _, l := range links {
		if l.name == "lossy sim" {
			continue // what is lost only takes longer
		}
		t.Run(l.name, func(t *testing.T) {
			a, b := l.make(t)
			x, y, err := pair(a, b) // opens what an adapter opens for its first memory
			check(t, err)
			check(t, errors.Join(x.SetLinger(0), x.Close(), y.Close()))
			before := settled()
			manyDials(t, a, b, 10_000)
			before.await(t)
		})
	}
}

func manyDials(t *testing.T, a, b *dat.IA, n int) {
	if testing.Short() {
		n = 300
	}
	p, err := b.Query()
	check(t, err)
	at := func(addr netip.Addr, port uint16) string { return netip.AddrPortFrom(addr, port).String() }
	server, nobody := p.Address, p.Address.As4()
	nobody[3] = 99
	lc := ListenConfig{IA: b}
	l, err := lc.Listen(context.Background(), 7000)
	check(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { // until the client closes
				_, _ = c.Read(make([]byte, 1))
				_ = c.Close()
			})
		}
	})
	var dials sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for i := range n {
		dials.Go(func() {
			address, want := at(server, 7000), []error{nil, syscall.ETIMEDOUT, syscall.ECONNREFUSED}
			switch i % 10 {
			case 0:
				address, want = at(server, 7001), []error{syscall.ECONNREFUSED, syscall.ETIMEDOUT}
			case 1:
				address, want = at(netip.AddrFrom4(nobody), 7000), []error{syscall.ETIMEDOUT}
			}
			d := Dialer{IA: a, Timeout: 10 * time.Second}
			if i%10 == 1 {
				d.Timeout = 100 * time.Millisecond
			}
			c, err := d.DialContext(context.Background(), "", address)
			if err == nil {
				_ = c.Close()
			}
			known := false
			for _, w := range want {
				known = known || errors.Is(err, w)
			}
			if !known {
				t.Errorf("dial %s: %v", address, err)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[address+" "+result(err)]++
		})
	}
	dials.Wait()
	check(t, l.Close())
	all.Wait()
	t.Log(outcomes)
	if outcomes[at(server, 7000)+" ok"] == 0 {
		t.Error("no dial has succeeded")
	}
	for _, ia := range []*dat.IA{a, b} {
		if open, err := ia.Connections(); err != nil || len(open) > 0 {
			t.Errorf("%d connections, %v", len(open), err)
		}
	}
}

func result(err error) string {
	var e syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return e.Error()
	}
	return "?"
}
