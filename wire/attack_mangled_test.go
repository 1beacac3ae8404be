package wire

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// mangler is a link that damages packets in ways that simlink does not: it truncates them, pads them, splits them, and
// sends a packet again after more than a window of later packets.
type mangler struct {
	link.Link
	r       *rand.Rand
	history [][]byte
	n       int
}

func (m *mangler) Send(bufs []link.Buf) {
	for i := range bufs {
		raw, path := append([]byte(nil), bufs[i].Data...), bufs[i].Path
		m.Link.Send(bufs[i : i+1])
		if path == link.PathReply {
			continue
		}
		m.history = append(m.history, raw)
		m.n++
		cut := 1 + m.r.IntN(len(raw)-1)
		switch m.n % 7 {
		case 0:
			m.again(raw[:cut], path)
		case 1:
			m.again(append(raw[:len(raw):len(raw)], raw[:min(cut, 64, m.Caps().MaxPayload-len(raw))]...), path)
		case 2:
			m.again(raw[:cut], path)
			m.again(raw[cut:], path)
		case 3:
			m.again(raw, path)
		case 4:
			if old := len(m.history) - maxWindow - 20; old > 0 {
				m.again(m.history[old], path)
				m.again(m.history[m.r.IntN(old)], path)
			}
		}
	}
}

func (m *mangler) again(raw []byte, path link.Path) {
	var b [1]link.Buf
	if m.Alloc(b[:]) == 1 {
		b[0].Data, b[0].Path = b[0].Data[:copy(b[0].Data, raw)], path
		m.Link.Send(b[:])
	}
}

// Attack 10: packets are reordered, duplicated, delayed by more than a window, truncated, extended and split. Messages
// must arrive once, in order and whole. A write must not be placed again after its memory was overwritten.
func TestAttack10Mangled(t *testing.T) { mangle(t, nil) }

// The same in secure mode, with many key updates.
func TestAttack10SecureMangled(t *testing.T) { mangle(t, frequent) }

func mangle(t *testing.T, keys *seal.Limits) {
	w := newSecureWorld(t, simlink.Config{Seed: 10, Delay: 5 * time.Microsecond, Reorder: 0.1, Duplicate: 0.1, Loss: 0.02, Corrupt: 0.02, Frames: 512}, Limits{}, keys, 2)
	a, b := w.nodes[0], w.nodes[1]
	m := &mangler{Link: a.link, r: randSource(10)}
	h, err := NewHost(randReader{randSource(11)}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	w.secure(h)
	a.host = h
	if a.eng, err = h.NewEngine(m, 0); err != nil {
		t.Fatal(err)
	}
	ca, cb := w.pair(plain)
	const size, rounds = 3000, 400
	src, dst, box := a.memory(size), b.memory(size), b.memory(size)
	for i := range uint64(rounds) {
		for j := 0; j+8 <= size; j += 8 {
			binary.BigEndian.PutUint64(src.mem[j:], i<<32|uint64(j))
		}
		b.postRecv(cb, box.seg(0, size), i)
		a.post(ca, ca.PostWrite(src.seg(0, size), i, dst.at(0), 0))
		a.post(ca, ca.PostSend(src.seg(0, size), i, 0))
		w.until("a round", time.Second, func() bool { return a.request.Len() == 2 && b.recv.Len() == 1 })
		var c Completion
		for a.request.Pop(&c) {
			if c.Cookie != i || c.Status != StatusSuccess {
				t.Fatalf("round %d: %+v", i, c)
			}
		}
		if b.recv.Pop(&c); c.Cookie != i || c.Length != size || !bytes.Equal(box.mem, src.mem) || !bytes.Equal(dst.mem, src.mem) {
			t.Fatalf("round %d: %+v, or wrong bytes", i, c)
		}
	}
	clear(dst.mem) // the consumer reuses the memory
	for _, raw := range m.history {
		if path, err := a.link.Resolve(b.addr, 0); err == nil {
			m.again(raw, path)
			a.link.Release(path)
		}
		w.run(time.Microsecond)
	}
	w.run(50 * time.Millisecond)
	if !bytes.Equal(dst.mem, make([]byte, size)) || b.recv.Len() != 0 {
		t.Error("an old packet had an effect")
	}
	if st := b.eng.Stats(); st.BadChecksum+st.Unopened == 0 || st.Duplicates+st.Replayed == 0 || st.Early == 0 || st.RxMessages != rounds {
		t.Errorf("the test tests nothing: %+v", st)
	}
	if err := a.eng.Disconnect(ca, true); err != nil {
		t.Fatal(err)
	}
	w.until("the end", time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
}
