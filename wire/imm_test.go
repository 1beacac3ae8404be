package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// Writes with immediate data must arrive in order with messages, over lossy networks too, with and without credit. The
// data of a write must be in place when its receive completes.
func TestWriteImm(t *testing.T) {
	for seed := range uint64(40) {
		w := newWorld(t, rough(seed, 2), 2)
		a, b := w.nodes[0], w.nodes[1]
		conn := plain
		conn.NoCredit = seed%2 == 1
		ca, cb := w.pair(conn)
		const count, size = 30, 3000
		src, window, box := a.memory(count*size), b.memory(count*size), b.memory(count*8)
		r := randSource(seed)
		src.fill(r)
		lengths := make([]int, count)
		for i := range count {
			at := i * size
			lengths[i] = r.IntN(size + 1)
			for post := func() error {
				if i%3 == 0 {
					lengths[i] = 8
					return ca.PostSend(src.seg(at, 8), uint64(i), 0)
				}
				return ca.PostWriteImm(src.seg(at, lengths[i]), uint64(i), window.at(at), uint32(i)<<24|7, Solicited)
			}; !a.post(ca, post()); {
				w.step()
			}
			if i >= 10 {
				b.postRecv(cb, box.seg((i-10)*8, 8), uint64(i-10))
			}
		}
		for i := count - 10; i < count; i++ {
			w.run(time.Duration(r.IntN(int(time.Millisecond))))
			b.postRecv(cb, box.seg(i*8, 8), uint64(i))
		}
		for i := range count {
			w.until("a receive", 5*time.Second, func() bool { return b.recv.Len() > 0 })
			var c Completion
			b.recv.Pop(&c)
			want := Completion{Conn: cb, Cookie: uint64(i), Length: uint32(lengths[i]), Op: OpRecv}
			got, text := window.mem[i*size:][:lengths[i]], src.mem[i*size:][:lengths[i]]
			if i%3 == 0 {
				got = box.mem[i*8:][:8]
			} else {
				want.Op, want.Data, want.Flags = OpRecvImm, uint32(i)<<24|7, Solicited
				if !bytes.Equal(box.mem[i*8:][:8], make([]byte, 8)) {
					t.Errorf("seed %d: receive %d was written to", seed, i)
				}
			}
			if c != want || !bytes.Equal(got, text) {
				t.Errorf("seed %d: receive %d: %+v, want %+v; data there %v", seed, i, c, want, bytes.Equal(got, text))
			}
		}
		w.until("the requests", 5*time.Second, func() bool { return a.request.Len() == count })
		var c Completion
		for i := 0; a.request.Pop(&c); i++ {
			if c.Cookie != uint64(i) || c.Status != StatusSuccess || int(c.Length) != lengths[i] || c.Data != 0 {
				t.Errorf("seed %d: request %d: %+v", seed, i, c)
			}
		}
	}
}

// A write with immediate data that never finds a receive must break the connection after NotReady.
func TestWriteImmNotReadyForEver(t *testing.T) {
	for _, promised := range []bool{true, false} {
		w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
		a, b := w.nodes[0], w.nodes[1]
		cfg := plain
		cfg.NoCredit = !promised
		ca, _ := w.pair(cfg)
		src, dst := a.memory(8), b.memory(8)
		a.post(ca, ca.PostWriteImm(src.seg(0, 8), 1, dst.at(0), 7, 0))
		w.run(29 * time.Second)
		if ca.State() != Established {
			t.Fatalf("promised %v: broke before the limit", promised)
		}
		w.until("the connection to break", 2*time.Second, func() bool { return ca.State() == Closed })
		var c Completion
		if !a.request.Pop(&c) || c.Status != StatusNotReady || c.Op != OpWriteImm {
			t.Errorf("promised %v: %+v", promised, c)
		}
	}
}

// A write with immediate data to memory without the right must not consume a receive.
func TestWriteImmDenied(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(plain)
	src, dst := a.memory(8), b.memory(8)
	b.postRecv(cb, dst.seg(0, 8), 1)
	to := dst.at(0)
	to.Key ^= 1
	a.post(ca, ca.PostWriteImm(src.seg(0, 8), 2, to, 7, 0))
	w.until("the end", time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
	var c Completion
	if !a.request.Pop(&c) || c.Status != StatusRemoteAccess || c.Op != OpWriteImm {
		t.Errorf("the write: %+v", c)
	}
	if !b.recv.Pop(&c) || c.Status != StatusFlushed || c.Op != OpRecv || c.Data != 0 {
		t.Errorf("the receive: %+v", c)
	}
}

// A path begins to drop large packets while writes with immediate data and atomics are outstanding. The data of these
// operations is cut again into smaller packets, and each operation must still execute once.
func TestExtensionsCutAnew(t *testing.T) {
	w := newWorld(t, simlink.Config{Seed: 3, Delay: 5 * time.Microsecond, MTU: 3000, Loss: 0.05}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(plain)
	w.until("larger packets", time.Minute, func() bool { return ca.pmtu.Size > basePacket })
	const size, rounds = 20000, 6
	src, dst, word, old := a.memory(size), b.memory(size), b.memory(16), a.memory(8)
	for i := range src.mem {
		src.mem[i] = byte(i * 7)
	}
	for i := range rounds {
		b.postRecv(cb, nil, uint64(i))
		a.post(ca, ca.PostFetchAdd(1, old.seg(0, 8)[0], uint64(2*i), word.at(8), 0))
		a.post(ca, ca.PostWriteImm(src.seg(0, size), uint64(2*i+1), dst.at(0), uint32(i), 0))
		if i == 2 {
			w.net.SetMTU(a.addr, b.addr, basePacket)
		}
		w.run(30 * time.Microsecond)
	}
	w.until("all of it", time.Minute, func() bool { return a.request.Len() == 2*rounds && b.recv.Len() == rounds })
	if n := w.drain(a.request); n != 2*rounds || !bytes.Equal(src.mem, dst.mem) || word.number(8) != rounds || old.number(0) != rounds-1 {
		t.Errorf("the word is %d, was %d before the last; data equal %v", word.number(8), old.number(0), bytes.Equal(src.mem, dst.mem))
	}
	if a.eng.Stats().BlackHoles == 0 {
		t.Error("the test tests nothing")
	}
}
