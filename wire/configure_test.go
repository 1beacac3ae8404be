package wire

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Posted receives must keep their order and their segments if they fit the new attributes.
func TestReconfigureKeepsReceives(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := a.host.NewConn(plain), b.host.NewConn(ConnConfig{Zone: 1, MaxRecv: 3, MaxRecvIOV: 2})
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	src, dst := a.memory(4096), b.memory(4096)
	copy(src.mem, bytes.Repeat([]byte("0123456789"), 100))
	posted := 0
	post := func() {
		segs := append(dst.seg(100*posted, 7), dst.seg(100*posted+50, 3)...)
		b.postRecv(cb, segs, uint64(posted))
		posted++
	}
	for _, size := range []struct{ depth, segs int }{{3, 2}, {4, 2}, {100, 5}, {6, 2}, {64, 4}} {
		cfg := plain
		cfg.MaxRecv, cfg.MaxRecvIOV = size.depth, size.segs
		if err := cb.Reconfigure(cfg); err != nil {
			t.Fatal(err)
		}
		post()
	}
	w.dial(a, b, ca, nil)
	w.until("request", time.Second, func() bool { return len(b.arrived) == 1 })
	w.accept(b, cb, nil)
	w.until("establishment", time.Second, func() bool { return ca.State() == Established })
	for i := range posted {
		a.post(ca, ca.PostSend(src.seg(10*i, 10), uint64(i), 0))
	}
	w.until("messages", time.Second, func() bool { return b.recv.Len() == posted })
	for i := range posted {
		var c Completion
		if b.recv.Pop(&c); c.Cookie != uint64(i) || c.Status != StatusSuccess || c.Length != 10 {
			t.Errorf("receive %d: %+v", i, c)
		}
		got := append(bytes.Clone(dst.mem[100*i:100*i+7]), dst.mem[100*i+50:100*i+53]...)
		if string(got) != "0123456789" {
			t.Errorf("receive %d: %q", i, got)
		}
	}
	if err := cb.Reconfigure(plain); err != ErrState {
		t.Errorf("while established: %v", err)
	}
}

func TestReconfigureRefuses(t *testing.T) {
	w := newWorld(t, simlink.Config{}, 1)
	n := w.nodes[0]
	c, mem := n.host.NewConn(plain), n.memory(64)
	for i := range 3 {
		n.postRecv(c, append(mem.seg(0, 8), mem.seg(8, 8)...), uint64(i))
	}
	for name, change := range map[string]func(*ConnConfig){
		"depth":    func(cfg *ConnConfig) { cfg.MaxRecv = 2 },
		"segments": func(cfg *ConnConfig) { cfg.MaxRecvIOV = 1 },
	} {
		cfg := plain
		cfg.Zone, cfg.MaxRDMA = 2, 8
		change(&cfg)
		if err := c.Reconfigure(cfg); err != ErrPosted {
			t.Errorf("%s: got %v, want %v", name, err, ErrPosted)
		}
		if c.zone.Load() != plain.Zone || c.maxRDMA.Load() != maxOperation || c.rq.depth != uint32(plain.MaxRecv) {
			t.Errorf("%s: something was changed", name)
		}
	}
}

// Receives are posted while the connection is reconfigured. Each must be posted as a whole or refused.
func TestReconfigureWhilePosting(t *testing.T) {
	w := newWorld(t, simlink.Config{}, 1)
	c, mem := w.nodes[0].host.NewConn(plain), w.nodes[0].memory(64)
	var wg sync.WaitGroup
	posted := make(chan int, 4)
	for range 4 {
		wg.Go(func() {
			n := 0
			for range 200 {
				if _, err := c.PostRecv(append(mem.seg(0, 8), mem.seg(8, 8)...), 1, 0); err == nil {
					n++
				}
			}
			posted <- n
		})
	}
	for i := range 200 {
		cfg := plain
		cfg.MaxRecv, cfg.MaxRecvIOV = 1+i*7%900, 1+i%5
		_ = c.Reconfigure(cfg) // fails if too many receives are posted
	}
	wg.Wait()
	close(posted)
	want := 0
	for n := range posted {
		want += n
	}
	if got := int(c.rq.postedCount.Load()); got != want {
		t.Errorf("%d receives are posted, want %d", got, want)
	}
	for n := range want {
		if r := c.rq.at(seq.Num(n)); r.nseg != 2 || r.length != 16 {
			t.Fatalf("receive %d: %+v", n, r)
		}
	}
}
