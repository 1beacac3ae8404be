//go:build !race

package stream

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

// maxIdle is the memory in bytes that an idle end of a stream may take.
const maxIdle = 16 << 10

// TestIdleMemory measures all memory of idle streams that have been used before: rings, objects of package dat, and the
// state of the protocol.
func TestIdleMemory(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	a, b := sim(t, simlink.Config{})
	keepA, keepB := newPair(t, a, b)
	lc := ListenConfig{IA: b} // one service: each stream keeps a part of the service that has accepted it
	l, err := lc.Listen(context.Background(), 0)
	check(t, err)
	defer l.Close()
	d := Dialer{IA: a}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var all []net.Conn
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	before := heap()
	for range n {
		x, err := d.DialContext(context.Background(), "", l.Addr().String())
		check(t, err)
		y := <-accepted
		all = append(all, x, y)
		_, err = x.Write([]byte("a request"))
		check(t, err)
		_, err = y.Read(make([]byte, 100))
		check(t, err)
	}
	tidyAll(keepA, keepB)
	each := (heap() - before) / uint64(2*n)
	t.Logf("%d streams: %d bytes an end", n, each)
	if each > maxIdle {
		t.Errorf("an idle end takes %d bytes; the limit is %d", each, maxIdle)
	}
	for _, c := range all {
		check(t, errors.Join(c.(*Conn).SetLinger(0), c.Close()))
	}
}
