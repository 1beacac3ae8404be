package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// A peer that gives no credit takes a message only when it has a receive. Each message must be received once and in
// order. This must also hold over lossy networks, and for messages that share packets with other operations.
func TestNotReady(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(t, rough(seed, 1), 2)
		a, b := w.nodes[0], w.nodes[1]
		noCredit := plain
		noCredit.NoCredit = true
		ca, cb := w.pair(noCredit)
		const count, size = 40, 100
		src, dst, window := a.memory(count*size), b.memory(count*size), b.memory(count*size)
		r := randSource(seed)
		src.fill(r)
		for i := range count { // a write of the same bytes precedes each message
			at := i * size
			for !a.post(ca, ca.PostWrite(src.seg(at, size), uint64(2*i), window.at(at), 0)) {
				w.step()
			}
			for !a.post(ca, ca.PostSend(src.seg(at, size), uint64(2*i+1), 0)) {
				w.step()
			}
			if i%3 == 0 {
				w.run(time.Duration(r.IntN(int(2 * time.Millisecond))))
			}
			if i >= 20 {
				b.postRecv(cb, dst.seg((i-20)*size, size), uint64(i-20))
			}
		}
		for i := count - 20; i < count; i++ {
			w.run(time.Duration(r.IntN(int(time.Millisecond))))
			b.postRecv(cb, dst.seg(i*size, size), uint64(i))
		}
		w.until("all messages", 5*time.Second, func() bool { return b.recv.Len() == count && a.request.Len() == 2*count })
		if !bytes.Equal(dst.mem, src.mem) || !bytes.Equal(window.mem, src.mem) {
			t.Errorf("seed %d: wrong bytes", seed)
		}
		var c Completion
		for i := 0; b.recv.Pop(&c); i++ {
			if c.Cookie != uint64(i) || c.Status != StatusSuccess || c.Length != size {
				t.Errorf("seed %d: receive %d: %+v", seed, i, c)
			}
		}
	}
}

// A message that never finds a receive must break the connection after NotReady, with the right status.
func TestNotReadyForEver(t *testing.T) {
	for _, promised := range []bool{true, false} {
		w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
		a, b := w.nodes[0], w.nodes[1]
		cfg := plain
		cfg.NoCredit = !promised
		ca, _ := w.pair(cfg)
		src := a.memory(8)
		a.post(ca, ca.PostSend(src.seg(0, 8), 1, 0))
		w.run(29 * time.Second)
		if ca.State() != Established {
			t.Fatalf("promised %v: broke before the limit", promised)
		}
		w.until("the connection to break", 2*time.Second, func() bool { return ca.State() == Closed })
		var c Completion
		if !a.request.Pop(&c) || c.Status != StatusNotReady {
			t.Errorf("promised %v: send: %+v", promised, c)
		}
		w.want(a.connect, KindBroken)
		w.until("the peer to hear", time.Second, func() bool { return b.connect.Len() == 1 })
		w.want(b.connect, KindBroken)
	}
}

// A message waits for a receive of the peer, and packets after it are lost. When the wait ends, the congestion window is
// full, so nothing can leave. The retransmission timer must run.
func TestNotReadyFullWindow(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	cfg := plain
	cfg.NoCredit = true
	ca, cb := w.pair(cfg)
	const count, size = 8, 1400
	src, dst := a.memory(size), b.memory(count*size)
	w.run(time.Second) // the search for the path MTU ends, and with it its timer
	w.net.SetLoss(a.addr, b.addr, 1)
	for i := range count {
		a.post(ca, ca.PostSend(src.seg(0, size), uint64(i), 0))
		b.postRecv(cb, dst.seg(i*size, size), uint64(i))
	}
	a.eng.Poll(Time(w.net.Now()))
	ca.receiverNotReady()
	ca.cc.TimedOut(ca.eng.now, 0)
	if ca.cc.Open(ca.eng.now, ca.sent.Pipe()) {
		t.Fatalf("the window has room for another packet than the %d in the network", ca.sent.Pipe())
	}
	w.net.SetLoss(a.addr, b.addr, 0)
	w.until("all messages", time.Second, func() bool { return b.recv.Len() == count && a.request.Len() == count })
}
