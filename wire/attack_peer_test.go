package wire

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// chunk is a chunk with n bytes of payload, each 0x66.
func chunk(size, n int, put func(b []byte)) []byte {
	b := bytes.Repeat([]byte{0x66}, size+n)
	put(b)
	return b
}

func sendChunk(f proto.ChunkFlags, n int, msn seq.Num, off uint32) []byte {
	return chunk(proto.SendSize, n, func(b []byte) { proto.PutSend(b, f, n, msn, off) })
}

func writeChunk(f proto.ChunkFlags, n int, key uint32, addr uint64) []byte {
	return chunk(proto.WriteSize, n, func(b []byte) { proto.PutWrite(b, f, n, key, addr) })
}

func readChunk(key uint32, addr uint64, n uint32, num seq.Num) []byte {
	return chunk(proto.ReadReqSize, 0, func(b []byte) { proto.PutReadReq(b, key, addr, n, num) })
}

func answerChunk(f proto.ChunkFlags, n int, num seq.Num, off uint32) []byte {
	return chunk(proto.ReadRespSize, n, func(b []byte) { proto.PutReadResp(b, f, n, num, off) })
}

func writeImmChunk(f proto.ChunkFlags, n int, key uint32, addr uint64, msn seq.Num, off uint32) []byte {
	return chunk(proto.WriteImmSize, n, func(b []byte) { proto.PutWriteImm(b, f, n, key, addr, msn, off, 0x77) })
}

func atomicChunk(f proto.ChunkFlags, key uint32, addr uint64, num seq.Num) []byte {
	return chunk(proto.AtomicReqSize, 0, func(b []byte) { proto.PutAtomicReq(b, f, key, addr, num, 1, 0) })
}

func atomicAnswer(num seq.Num, old uint64) []byte {
	return chunk(proto.AtomicRespSize, 0, func(b []byte) { proto.PutAtomicResp(b, num, old) })
}

// Attack 5: acknowledgements that cannot be: from one who does not know the connection they change
// nothing, from the peer they do nothing but what it could have said in truth, and the connection
// goes on when the genuine peer speaks again.
func TestAttack05FalseAcknowledgements(t *testing.T) {
	ones := bytes.Repeat([]byte{0xff}, proto.SACKSize)
	for _, tc := range []struct {
		name string
		lie  func(h *proto.Header, c *Conn)
		sack []byte
	}{
		{"of one packet not sent", func(h *proto.Header, c *Conn) { h.Ack = c.send.nxt + 1 }, nil},
		{"of many packets not sent", func(h *proto.Header, c *Conn) { h.Ack = c.send.nxt + 10*maxWindow }, nil},
		{"half the numbers ahead", func(h *proto.Header, c *Conn) { h.Ack = c.send.una + 1<<31 - 1 }, nil},
		{"of the past", func(h *proto.Header, c *Conn) { h.Ack = c.send.una - 1 }, nil},
		{"SACK of packets never sent", func(h *proto.Header, c *Conn) { h.Ack = c.send.una }, append(make([]byte, 8), ones[8:]...)},
		{"SACK beside a false Ack", func(h *proto.Header, c *Conn) { h.Ack = c.send.nxt + 5 }, ones},
		{"credit taken back", func(h *proto.Header, c *Conn) { h.Credit = c.send.credit - 3 }, nil},
		{"credit half the numbers back", func(h *proto.Header, c *Conn) { h.Credit = c.send.credit - 1<<31 + 1 }, nil},
		{"echo of the future", func(h *proto.Header, _ *Conn) { h.Echo = h.TS + 1<<20 }, nil},
		{"echo of long ago", func(h *proto.Header, _ *Conn) { h.Echo = h.TS - 1<<30 }, nil},
		{"the other epoch", func(h *proto.Header, c *Conn) { h.Flags, h.Ack = proto.EpochSeen, c.send.nxt }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			cv, _ := s.join(plain)
			mem, there := s.victim.memory(64), s.foe.memory(64)
			for i := range 4 {
				s.victim.post(cv, cv.PostWrite(mem.seg(0, 64), uint64(i), there.at(0), 0))
				s.victim.eng.Poll(Time(s.net.Now()))
			}
			h := s.header(cv, proto.Ack)
			tc.lie(&h, cv)
			if tc.sack != nil {
				h.Flags |= proto.HasSACK
			}
			blind := h
			blind.CID ^= 1
			s.unmoved("a stranger's", func() {
				for range 10 {
					s.strike(&blind, tc.sack)
				}
			}, cv, s.cb)
			was := standingOf(cv)
			for range 10 {
				s.strike(&h, tc.sack)
			}
			got := standingOf(cv)
			was.heard, was.newest = got.heard, got.newest // it was heard of
			if got != was {
				t.Errorf("the connection was\n%+v, now it is\n%+v", was, got)
			}
			if p := cv.send.pipe; p < 0 || p > cv.send.nxt.Sub(cv.send.una) || cv.send.nlost < 0 {
				t.Errorf("pipe %d, lost %d of %d", p, cv.send.nlost, cv.send.nxt.Sub(cv.send.una))
			}
			s.foe.down = false // the truth
			s.until("the writes", time.Second, func() bool { return s.victim.request.Len() == 4 })
			s.drop(cv)
			s.finish()
		})
	}
}

// Attack 5 and 19: a SACK of all there is, that the peer does not stand by: the packets are sent
// again, once each, and no request completes before its acknowledgement.
func TestAttack05SACKThatIsTakenBack(t *testing.T) {
	s := newSiege(t)
	cv, _ := s.join(plain)
	mem, there := s.victim.memory(4096), s.foe.memory(4096)
	for i := range 16 {
		s.victim.post(cv, cv.PostWrite(mem.seg(0, 4096), uint64(i), there.at(0), 0))
	}
	s.victim.eng.Poll(Time(s.net.Now()))
	out := cv.send.nxt.Sub(cv.send.una)
	h := s.header(cv, proto.Ack)
	h.Flags |= proto.HasSACK
	sent := s.victim.eng.Stats().TxPackets
	for range 1000 {
		s.strike(&h, bytes.Repeat([]byte{0xff}, proto.SACKSize))
	}
	if n := s.victim.request.Len(); n != 0 {
		t.Errorf("%d requests completed", n)
	}
	if got := s.victim.eng.Stats().TxPackets - sent; got > 1000+maxWindow {
		t.Errorf("1000 SACKs of %d packets were answered by %d packets", out, got)
	}
	if cv.send.pipe < 0 || cv.send.nlost < 0 || cv.send.nxt.Sub(cv.send.una) > maxWindow {
		t.Errorf("pipe %d, lost %d, outstanding %d", cv.send.pipe, cv.send.nlost, cv.send.nxt.Sub(cv.send.una))
	}
	s.work()
	s.foe.down = false
	s.until("the writes", time.Second, func() bool { return s.victim.request.Len() == 16 })
	s.drop(cv)
	s.finish()
}

// mangler is a link that does to packets what no network of simlink does: cuts them short, pads
// them, splits them in two, and sends old ones again when a window has passed.
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

// Attack 10: packets reordered, duplicated, delayed by more than a window, truncated, extended and
// split: messages arrive once, in order and whole, and a write is not repeated once it was overwritten.
func TestAttack10Mangled(t *testing.T) {
	w := newWorld(t, simlink.Config{Seed: 10, Delay: 5 * time.Microsecond, Reorder: 0.1, Duplicate: 0.1, Loss: 0.02, Corrupt: 0.02, Frames: 512}, 2)
	a, b := w.nodes[0], w.nodes[1]
	m := &mangler{Link: a.link, r: randSource(10)}
	h, err := NewHost(randReader{randSource(11)}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
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
	clear(dst.mem) // the consumer uses it for something else
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
	if st := b.eng.Stats(); st.BadChecksum == 0 || st.Duplicates == 0 || st.Early == 0 || st.RxMessages != rounds {
		t.Errorf("the test tests nothing: %+v", st)
	}
	if err := a.eng.Disconnect(ca, true); err != nil {
		t.Fatal(err)
	}
	w.until("the end", time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
}

// Attacks 15 and 16: RDMA with a key, a right or a range that is not the peer's. Nothing is written
// or read, and the offender's connection ends, as that of an honest program with the same fault.
func TestAttack15And16RemoteAccess(t *testing.T) {
	const base, size = 0x4000, 64
	type target struct {
		key  uint32
		addr uint64
		n    uint32
	}
	for _, tc := range []struct {
		name   string
		zone   uint32
		rights Rights // 0: all
		aim    func(s *siege, r *Region) target
		read   bool // reads only
	}{
		{"zone of another connection", 2, 0, func(_ *siege, r *Region) target { return target{r.remote, base, 8} }, false},
		{"after unregister", 1, 0, func(s *siege, r *Region) target {
			s.victim.host.Unregister(r)
			return target{r.remote, base, 8}
		}, false},
		{"after unregister and reuse", 1, 0, func(s *siege, r *Region) target {
			s.victim.host.Unregister(r)
			if _, err := s.victim.host.Register(make([]byte, size), base, 1, allRights); err != nil {
				s.t.Fatal(err)
			}
			return target{r.remote, base, 8}
		}, false},
		{"one above the key", 1, 0, func(_ *siege, r *Region) target { return target{r.remote + 1, base, 8} }, false},
		{"one below the key", 1, 0, func(_ *siege, r *Region) target { return target{r.remote - 1, base, 8} }, false},
		{"the key before it was permuted", 1, 0, func(_ *siege, r *Region) target { return target{r.local, base, 8} }, false},
		{"no key", 1, 0, func(*siege, *Region) target { return target{0, base, 8} }, false},
		{"no remote right", 1, LocalRead | LocalWrite, func(s *siege, r *Region) target {
			return target{s.victim.host.keys.Encrypt(r.local), base, 8}
		}, false},
		{"the other remote right", 1, LocalRead | LocalWrite | RemoteRead, func(_ *siege, r *Region) target { return target{r.remote, base, 8} }, false},
		{"one byte before", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base - 1, 8} }, false},
		{"one byte after", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base + size - 7, 8} }, false},
		{"right behind", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base + size, 1} }, false},
		{"one byte too long", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base, size + 1} }, false},
		{"address 0", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, 0, 8} }, false},
		{"sum wraps to the base", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, ^uint64(0) - 3, 8} }, false},
		{"last address", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, ^uint64(0), 1} }, false},
		{"sum wraps 32 bits", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base + 8, ^uint32(0) - 3} }, true},
		{"the longest read", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base, ^uint32(0)} }, true},
		{"a read of the sign bit", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base, 1 << 31} }, true},
	} {
		for _, read := range []bool{false, true} {
			if tc.read && !read {
				continue
			}
			t.Run(map[bool]string{false: "write/", true: "read/"}[read]+tc.name, func(t *testing.T) {
				s := newSiege(t)
				cv, _ := s.join(plain)
				arena := bytes.Repeat([]byte{0xaa}, 3*size) // the region is the middle of it
				rights := tc.rights
				if rights == 0 {
					rights = allRights
				} else if read && rights&RemoteRead != 0 {
					rights = rights&^RemoteRead | RemoteWrite
				}
				r, err := s.victim.host.Register(arena[size:2*size:2*size], base, tc.zone, rights)
				if err != nil {
					t.Fatal(err)
				}
				if good := s.victim.memory(8); tc.zone == 1 { // one access that is fine, for the region to be known
					h := s.header(cv, proto.Data)
					s.strike(&h, writeChunk(proto.Last, 8, good.remote, good.base))
				}
				to := tc.aim(s, r)
				body := readChunk(to.key, to.addr, to.n, 0)
				if !read {
					body = writeChunk(proto.Last, int(to.n), to.key, to.addr)
				}
				before := s.victim.eng.Stats().ProtectionErrors
				h := s.header(cv, proto.Data)
				s.strike(&h, body)
				if !bytes.Equal(arena, bytes.Repeat([]byte{0xaa}, 3*size)) {
					t.Error("memory was written")
				}
				if got := s.victim.eng.Stats().ProtectionErrors - before; got != 1 {
					t.Errorf("%d protection errors, want 1", got)
				}
				s.broken(cv, proto.ReasonAccess)
				if s.out.types[proto.Data] != 0 {
					t.Error("data left for the foe")
				}
				s.finish()
			})
		}
	}
	t.Run("zero length", func(t *testing.T) {
		s := newSiege(t)
		cv, _ := s.join(plain)
		arena := bytes.Repeat([]byte{0xaa}, 64)
		if _, err := s.victim.host.Register(arena, base, 2, allRights); err != nil {
			t.Fatal(err)
		}
		for _, body := range [][]byte{
			writeChunk(proto.Last, 0, 12345, base), writeChunk(0, 0, 0, ^uint64(0)), readChunk(12345, ^uint64(0), 0, 0),
		} {
			h := s.header(cv, proto.Data)
			s.strike(&h, body)
		}
		if cv.State() != Established || !bytes.Equal(arena, bytes.Repeat([]byte{0xaa}, 64)) {
			t.Errorf("state %d, memory % x", cv.State(), arena)
		}
		s.drop(cv)
		s.finish()
	})
}

// Attack 15: a region that is unregistered while a read of it is served: what has left has left, the
// rest is not read.
func TestAttack15UnregisterWhileRead(t *testing.T) {
	s := newSiege(t)
	cv, _ := s.join(plain)
	big := s.victim.memory(1 << 20)
	h := s.header(cv, proto.Data)
	s.strike(&h, readChunk(big.remote, big.base, 1<<20, 0))
	sent := s.out.types[proto.Data]
	if sent == 0 || sent > maxWindow {
		t.Fatalf("%d packets of the answer, want some and a window at most", sent)
	}
	s.victim.host.Unregister(big.Region)
	h = s.header(cv, proto.Ack)
	h.Ack = cv.send.nxt
	s.strike(&h, nil)
	if got := s.out.types[proto.Data]; got != sent {
		t.Errorf("%d more packets after the region had gone", got-sent)
	}
	s.broken(cv, proto.ReasonAccess)
	s.finish()
}

// fault is a packet, or several, after which a connection ends.
type fault struct {
	name    string
	packets [][]byte
	why     proto.Reason
	recv    Status // of the one receive that is posted
}

// endWith has the victim, who has posted one receive of 64 bytes, receive the packets of each case.
func endWith(t *testing.T, cases []fault) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			cv, _ := s.join(plain)
			arena := bytes.Repeat([]byte{0xaa}, 192)
			r, err := s.victim.host.Register(arena, 0x4000, 1, allRights)
			if err != nil {
				t.Fatal(err)
			}
			mem := memory{r, arena}
			s.victim.postRecv(cv, mem.seg(64, 64), 7)
			for _, body := range tc.packets {
				if cv.State() != Established {
					t.Fatal("it ended too early")
				}
				h := s.header(cv, proto.Data)
				s.strike(&h, body)
			}
			s.broken(cv, tc.why)
			var c Completion
			if !s.victim.recv.Pop(&c) || c.Cookie != 7 || c.Status != tc.recv || s.victim.recv.Len() != 0 {
				t.Errorf("the receive: %+v and %d more, want status %d", c, s.victim.recv.Len(), tc.recv)
			}
			if edge := bytes.Repeat([]byte{0xaa}, 64); !bytes.Equal(arena[:64], edge) || !bytes.Equal(arena[128:], edge) {
				t.Error("memory beside the receive was written")
			}
			s.finish()
		})
	}
}

// Attack 17: more reads than are served at a time, and messages that no receive was promised for.
func TestAttack17BeyondWhatWasGranted(t *testing.T) {
	flood := func(n int) (b []byte) {
		for i := range n {
			b = append(b, readChunk(0, 0, 0, seq.Num(i))...)
		}
		return b
	}
	endWith(t, []fault{
		{"one read too many", [][]byte{flood(plain.ReadIn + 1)}, proto.ReasonProtocol, StatusFlushed},
		{"one atomic too many", [][]byte{append(flood(plain.ReadIn), atomicChunk(0, 0, 0, 9)...)}, proto.ReasonProtocol, StatusFlushed},
		{"atomic with a payload", [][]byte{append([]byte{byte(proto.OpAtomicReq), 1, 0, 4}, make([]byte, proto.AtomicReqSize)...)}, proto.ReasonProtocol, StatusFlushed},
		{"answer to no atomic", [][]byte{atomicAnswer(0, 1)}, proto.ReasonProtocol, StatusFlushed},
		{"atomic answer with a payload", [][]byte{append([]byte{byte(proto.OpAtomicResp), 1, 0, 4}, make([]byte, proto.AtomicRespSize)...)}, proto.ReasonProtocol, StatusFlushed},
		{"immediate data without credit", [][]byte{append(sendChunk(proto.Last, 8, 0, 0), writeImmChunk(proto.Last, 0, 0, 0, 1, 0)...)}, proto.ReasonNotReady, StatusSuccess},
		{"a packet full of reads", [][]byte{flood(50)}, proto.ReasonProtocol, StatusFlushed},
		{"read with a payload", [][]byte{append([]byte{byte(proto.OpReadReq), 1, 0, 4}, make([]byte, proto.ReadReqSize)...)}, proto.ReasonProtocol, StatusFlushed},
		{"answer to no read", [][]byte{answerChunk(proto.Last, 8, 0, 0)}, proto.ReasonProtocol, StatusFlushed},
		{"message without credit", [][]byte{append(sendChunk(proto.Last, 8, 0, 0), sendChunk(proto.Last, 8, 1, 0)...)}, proto.ReasonNotReady, StatusSuccess},
		{"message without credit, later", [][]byte{sendChunk(proto.Last, 0, 0, 0), sendChunk(proto.Last, 0, 1, 0)}, proto.ReasonNotReady, StatusSuccess},
	})
}

// Attack 17: reads are served again only as far as their answers are acknowledged, so that one
// connection has no more than its grant outstanding.
func TestAttack17ReadsNotAcknowledged(t *testing.T) {
	s := newSiege(t)
	cv, _ := s.join(plain)
	for i := range plain.ReadIn {
		h := s.header(cv, proto.Data)
		h.Ack = cv.send.una
		s.strike(&h, readChunk(0, 0, 0, seq.Num(i)))
	}
	if cv.State() != Established || cv.resp.tail.Sub(cv.resp.acked.op) != plain.ReadIn || len(cv.resp.jobs) != plain.ReadIn {
		t.Fatalf("state %d, %d jobs of %d", cv.State(), cv.resp.tail.Sub(cv.resp.acked.op), len(cv.resp.jobs))
	}
	h := s.header(cv, proto.Data)
	s.strike(&h, readChunk(0, 0, 0, 99))
	s.broken(cv, proto.ReasonProtocol)
	s.finish()
}

// Attack 18: messages that do not fit, or do not fit together.
func TestAttack18Messages(t *testing.T) {
	const L = proto.Last
	endWith(t, []fault{
		{"one byte too long", [][]byte{sendChunk(L, 65, 0, 0)}, proto.ReasonLength, StatusLocalLength},
		{"too long by its second piece", [][]byte{sendChunk(0, 60, 0, 0), sendChunk(L, 5, 0, 60)}, proto.ReasonLength, StatusLocalLength},
		{"offset beyond the receive", [][]byte{sendChunk(L, 1, 0, 64)}, proto.ReasonProtocol, StatusFlushed},
		{"offset that wraps", [][]byte{sendChunk(0, 8, 0, 0), sendChunk(L, 8, 0, ^uint32(0)-3)}, proto.ReasonProtocol, StatusFlushed},
		{"piece again", [][]byte{sendChunk(0, 8, 0, 0), sendChunk(0, 8, 0, 0)}, proto.ReasonProtocol, StatusFlushed},
		{"piece left out", [][]byte{sendChunk(0, 8, 0, 0), sendChunk(L, 8, 0, 16)}, proto.ReasonProtocol, StatusFlushed},
		{"first piece missing", [][]byte{sendChunk(L, 8, 0, 8)}, proto.ReasonProtocol, StatusFlushed},
		{"two messages interleaved", [][]byte{sendChunk(0, 8, 0, 0), sendChunk(0, 8, 1, 0)}, proto.ReasonProtocol, StatusFlushed},
		{"number of the next message", [][]byte{sendChunk(L, 8, 1, 0)}, proto.ReasonProtocol, StatusFlushed},
		{"number of the last message", [][]byte{sendChunk(L, 8, ^seq.Num(0), 0)}, proto.ReasonProtocol, StatusFlushed},
		{"more after the last piece", [][]byte{append(sendChunk(L, 8, 0, 0), sendChunk(L, 8, 0, 8)...)}, proto.ReasonProtocol, StatusSuccess},
		{"message goes on as a write", [][]byte{sendChunk(0, 8, 0, 0), writeImmChunk(L, 0, 0, 0, 0, 8)}, proto.ReasonProtocol, StatusFlushed},
		{"write goes on as a message", [][]byte{writeImmChunk(0, 0, 0, 0, 0, 0), sendChunk(L, 8, 0, 8)}, proto.ReasonProtocol, StatusFlushed},
		{"write, number of the next message", [][]byte{writeImmChunk(L, 0, 0, 0, 1, 0)}, proto.ReasonProtocol, StatusFlushed},
		{"write, piece left out", [][]byte{writeImmChunk(L, 0, 0, 0, 0, 8)}, proto.ReasonProtocol, StatusFlushed},
		{"write, two in one number", [][]byte{append(writeImmChunk(L, 0, 0, 0, 0, 0), writeImmChunk(L, 0, 0, 0, 0, 0)...)}, proto.ReasonProtocol, StatusSuccess},
		{"length beyond the packet", [][]byte{sendChunk(L, 9, 0, 0)[:proto.SendSize+8]}, proto.ReasonProtocol, StatusFlushed},
		{"half a chunk header", [][]byte{sendChunk(L, 0, 0, 0)[:proto.SendSize-1]}, proto.ReasonProtocol, StatusFlushed},
		{"no such chunk", [][]byte{{0, 1, 0, 0}}, proto.ReasonProtocol, StatusFlushed},
		{"ready with a payload", [][]byte{{byte(proto.OpReady), 1, 0, 1, 0}}, proto.ReasonProtocol, StatusFlushed},
	})
}

// Attack 18: a message whose last piece never comes keeps its one receive for as long as the peer
// shows that it lives, and no longer.
func TestAttack18LastPieceNeverSent(t *testing.T) {
	s := newSiege(t)
	cv, _ := s.join(plain)
	mem := s.victim.memory(64)
	s.victim.postRecv(cv, mem.seg(0, 64), 7)
	for i := range uint32(8) {
		h := s.header(cv, proto.Data)
		s.strike(&h, sendChunk(0, 8, 0, i*8))
	}
	for range 1000 { // pieces of nothing are no progress and no harm
		h := s.header(cv, proto.Data)
		s.strike(&h, sendChunk(0, 0, 0, 64))
	}
	if cv.State() != Established || s.victim.recv.Len() != 0 {
		t.Fatalf("state %d, %d completions", cv.State(), s.victim.recv.Len())
	}
	s.until("the end of the silent peer", 13*time.Second, func() bool { return cv.State() == Closed })
	s.want(s.victim.connect, KindBroken)
	var c Completion
	if !s.victim.recv.Pop(&c) || c.Status != StatusFlushed || c.Cookie != 7 {
		t.Errorf("the receive: %+v", c)
	}
	s.finish()
}
