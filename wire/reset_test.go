package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// restart makes a node lose all state, its secrets included, like a process that was killed and started again.
func (w *world) restart(n *node) {
	w.t.Helper()
	n.eng.Close()
	w.seed++
	h, err := NewHost(randReader{randSource(w.seed << 8)}, Limits{})
	if err != nil {
		w.t.Fatal(err)
	}
	n.host = h
	if n.eng, err = h.NewEngine(n.link, Time(w.net.Now())); err != nil {
		w.t.Fatal(err)
	}
}

// A restart of the peer must be noticed with the first packet that is sent to the peer, long before GiveUp.
func TestPeerThatRestarts(t *testing.T) {
	for _, loss := range []float64{0, 0.2} {
		w := newWorld(t, simlink.Config{Delay: time.Microsecond, Loss: loss, Seed: 5}, 2)
		a, b := w.nodes[0], w.nodes[1]
		ca, _ := w.pair(plain)
		src, dst := a.memory(64), b.memory(64)
		w.restart(b)
		a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
		w.until("the connection to break", 100*time.Millisecond, func() bool { return ca.State() == Closed })
		var c Completion
		if !a.request.Pop(&c) || c.Status != StatusTransport {
			t.Errorf("write: %+v", c)
		}
		w.wantBroken(a.connect, BreakEnded)
		w.run(2 * time.Second)
		if a.eng.Connections() != 0 || len(a.host.peers.cids) != 0 {
			t.Errorf("%d connections, %d peers left", a.eng.Connections(), len(a.host.peers.cids))
		}
	}
}

// An attacker forges Resets and knows everything but the time stamp of the challenge ACK. However many Resets arrive,
// their only effect must be one challenge ACK.
func TestForgedReset(t *testing.T) {
	w := newWorld(t, simlink.Config{}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(plain)
	w.run(time.Millisecond)
	for i := range uint32(1000) {
		w.inject(b, a, &proto.Header{Type: proto.Reset, CID: cb.cid, Tag: ca.peerTag, PSN: ca.sent.Nxt, Echo: i}, nil)
	}
	src, dst := a.memory(64), b.memory(64)
	a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	w.until("the write", time.Second, func() bool { return a.request.Len() == 1 })
	if ca.State() != Established || ca.challenge.pending {
		t.Errorf("state %d, challenge ACK %+v", ca.State(), ca.challenge)
	}
}
