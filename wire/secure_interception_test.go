//go:build !race

package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// wiretap counts the places in packets that show known data.
type wiretap struct {
	known map[uint64]bool // each 8 bytes of the data, at any offset
	seen  int
	types map[proto.Type]int // packets by type
}

func newWiretap(data []byte) *wiretap {
	t := &wiretap{known: make(map[uint64]bool, len(data)), types: map[proto.Type]int{}}
	for i := range len(data) - 7 {
		t.known[binary.LittleEndian.Uint64(data[i:])] = true
	}
	return t
}

func (t *wiretap) show(packet []byte) {
	t.types[typeOf(packet)]++
	for i := range len(packet) - 7 {
		if t.known[binary.LittleEndian.Uint64(packet[i:])] {
			t.seen++
		}
	}
}

// connectWith connects nodes 0 and 1 with private data of both.
func (w *world) connectWith(hello, welcome []byte) (ca, cb *Conn) {
	w.t.Helper()
	a, b := w.nodes[0], w.nodes[1]
	ca, cb = a.host.NewConn(plain), b.host.NewConn(plain)
	if err := b.host.Listen(service, b); err != nil {
		w.t.Fatal(err)
	}
	w.dial(a, b, ca, hello)
	w.until("the request", 10*time.Second, func() bool { return len(b.arrived) > 0 })
	w.accept(b, cb, welcome)
	w.until("establishment", 10*time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
	w.want(a.connect, KindEstablished)
	w.want(b.connect, KindEstablished)
	return ca, cb
}

// exchange moves data from node 0 to node 1, by messages and by writes with and without immediate data, and reads it
// back.
func (w *world) exchange(ca, cb *Conn, data []byte) {
	w.t.Helper()
	a, b := w.nodes[0], w.nodes[1]
	size, piece := len(data), len(data)/48
	src, dst, back := a.memory(size), b.memory(size), a.memory(size)
	copy(src.mem, data)
	for off := 0; off < size; off += piece {
		n := min(piece, size-off)
		switch off / piece % 3 {
		case 0:
			b.postRecv(cb, dst.seg(off, n), 1)
			a.post(ca, ca.PostSend(src.seg(off, n), 1, 0))
		case 1:
			a.post(ca, ca.PostWrite(src.seg(off, n), 2, dst.at(off), 0))
		case 2:
			b.postRecv(cb, nil, 1)
			a.post(ca, ca.PostWriteImm(src.seg(off, n), 3, dst.at(off), 7, 0))
		}
		a.post(ca, ca.PostRead(back.seg(off, n), 4, dst.at(off), uint32(n), 0))
		w.until("a piece", 20*time.Second, func() bool { return a.request.Len() == 2 })
		w.drain(a.request)
		w.drain(b.recv)
	}
	if !bytes.Equal(dst.mem, data) || !bytes.Equal(back.mem, data) {
		w.t.Error("other data came")
	}
}

// What is sent cannot be seen on the wire: no 8 bytes of 1 MiB of known data, at any offset, in any packet, while packets
// are lost, sent again and probed, and keys change. In plaintext mode, all of it can be seen.
func TestAttackInterception(t *testing.T) {
	known := make([]byte, 1<<20)
	_, _ = randReader{randSource(8)}.Read(known) // it never fails
	for _, tc := range []struct {
		name string
		net  simlink.Config
		keys *seal.Limits
	}{
		{"IK", simlink.Config{Seed: 8}, frequent},
		{"NNpsk0, jumbo", simlink.Config{Seed: 15, MTU: 8952, FrameSize: 2048, RxFrameSize: 700}, frequent},
		{"plaintext", simlink.Config{Seed: 8}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.net.Delay = 5 * time.Microsecond
			w := newSecureWorld(t, impaired(tc.net), Limits{}, tc.keys, 2)
			ear := newWiretap(known)
			for _, n := range w.nodes {
				w.tap(n, &tap{show: ear.show})
			}
			ca, cb := w.connectWith(known[:300], known[300:600])
			if secure := tc.keys != nil; secure != (ear.seen == 0) {
				t.Errorf("%d places in the handshake show private data", ear.seen)
			}
			w.run(time.Second) // time for the search for the path MTU
			w.exchange(ca, cb, known)
			if secure := tc.keys != nil; secure && ear.seen != 0 || !secure && ear.seen < 2*len(known) {
				t.Errorf("%d places show known data", ear.seen)
			}
			if n := w.nodes[0].eng.Stats().Retransmits; n < 10 || ear.types[proto.Probe] == 0 || ear.types[proto.Probed] == 0 {
				t.Errorf("%d retransmissions, packets by type: %v", n, ear.types)
			}
			if ca.keys != nil {
				if phases, _ := ca.keys.Phases(); phases < 5 {
					t.Errorf("%d key updates", phases)
				}
			}
			w.over(ca, cb)
		})
	}
}
