package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// usual stands for the limits of seal.LimitsFor. frequent makes a key update after a few packets.
var (
	usual    = &seal.Limits{}
	frequent = &seal.Limits{Packets: 1 << 20, Update: 40, Age: time.Hour, Failures: 1 << 20}
)

// secure puts a host into secure mode if its world is in secure mode.
func (w *world) secure(h *Host) {
	if w.keys != nil {
		s := Security{Responder: w.noise}
		if w.keyLog != nil {
			s.KeyLog = w.keyLog
		}
		switch {
		case w.runner != nil:
			s.Runner = w.runner
		case w.late != nil:
			s.Runner = w.late
		}
		h.Secure(s)
		h.keyLimits, h.newCipher = *w.keys, w.model.newCipher
	}
}

// requester returns what a Dial needs in the mode of the world.
func (w *world) requester() Requester {
	if w.keys == nil {
		return nil
	}
	return w.noise
}

// tap is a link that shows the packets that it sends. While drop returns true for a packet, the packet is lost. edit
// returns a packet that leaves in place of another one, without the CRC.
type tap struct {
	link.Link
	show func(packet []byte)
	drop func(packet []byte) bool
	edit func(packet []byte) []byte // nil: no change
}

func (t *tap) Send(bufs []link.Buf) {
	for i := 0; i < len(bufs); {
		j := i + 1
		packet := append([]byte(nil), bufs[i].Data...)
		for bufs[j-1].Flags&link.More != 0 {
			packet = append(packet, bufs[j].Data...)
			j++
		}
		if t.show != nil {
			t.show(packet)
		}
		if t.drop != nil && t.drop(packet) {
			t.Link.Free(bufs[i:j])
		} else {
			if t.edit != nil && j == i+1 {
				if b := t.edit(packet[:len(packet)-proto.TrailerSize]); b != nil {
					frame := bufs[i].Data[:cap(bufs[i].Data)]
					bufs[i].Data = frame[:copy(frame, withCRC(b))]
				}
			}
			t.Link.Send(bufs[i:j])
		}
		i = j
	}
}

// tap replaces the engine of a node by one whose link shows its packets. The tap may have a link that wraps that of the node.
func (w *world) tap(n *node, t *tap) {
	w.t.Helper()
	h, err := NewHost(randReader{randSource(w.seed + 1000 + w.made)}, w.limits)
	if err != nil {
		w.t.Fatal(err)
	}
	w.made++
	w.secure(h)
	if t.Link == nil {
		t.Link = n.link
	}
	n.host = h
	if n.eng, err = h.NewEngine(t, Time(w.net.Now())); err != nil {
		w.t.Fatal(err)
	}
}

// over ends a connection between nodes 0 and 1, and checks that nothing is left of it.
func (w *world) over(ca, cb *Conn) {
	w.t.Helper()
	if err := w.nodes[0].eng.Disconnect(ca, true); err != nil {
		w.t.Fatal(err)
	}
	w.until("the end", 10*time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
	w.run(5 * time.Second)
	for i, n := range w.nodes {
		e := n.eng
		if e.Connections() != 0 || e.timers.armed() != 0 || len(e.host.peers.cids) != 0 || e.heldFrames != 0 || n.link.Paths() != 0 {
			w.t.Errorf("node %d: %d connections, %d timers, %d peers, %d frames, %d paths left", i,
				e.Connections(), e.timers.armed(), len(e.host.peers.cids), e.heldFrames, n.link.Paths())
		}
		e.Close()
		if left := n.link.Outstanding(); left != 0 {
			w.t.Errorf("node %d: %d frames left", i, left)
		}
	}
}

// newSecureSiege makes a siege in secure mode. The foe is on the path: it has the address of the friend, and reads all
// packets from and to the victim.
func newSecureSiege(t testing.TB) *siege {
	t.Helper()
	cfg := simlink.Config{Frames: siegeFrames, Delay: time.Microsecond, Seed: 1}
	s := newSiegeOf(t, cfg, netip.AddrFrom4([4]byte{10}), usual)
	s.asFriend()
	return s
}
