package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// fault is one or more packets that break a connection.
type fault struct {
	name    string
	packets [][]byte
	why     proto.Reason
	recv    Status // status of the only posted receive
}

// endWith sends, in each mode, the packets of each case to the victim, which has posted one receive of 64 bytes.
func endWith(t *testing.T, cases []fault) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				s := newModeSiege(t, keys)
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
	})
}

// Attack 17: the peer sends more reads than it may, and messages without credit.
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
		{"read of 2^31 bytes", [][]byte{readChunk(0, 0, maxOperation+1, 0)}, proto.ReasonProtocol, StatusFlushed},
		{"read of 2^31 - 1 bytes, with a wrong key", [][]byte{readChunk(0, 0, maxOperation, 0)}, proto.ReasonAccess, StatusFlushed},
		{"answer to no read", [][]byte{answerChunk(proto.Last, 8, 0, 0)}, proto.ReasonProtocol, StatusFlushed},
		{"message without credit", [][]byte{append(sendChunk(proto.Last, 8, 0, 0), sendChunk(proto.Last, 8, 1, 0)...)}, proto.ReasonNotReady, StatusSuccess},
		{"message without credit, later", [][]byte{sendChunk(proto.Last, 0, 0, 0), sendChunk(proto.Last, 0, 1, 0)}, proto.ReasonNotReady, StatusSuccess},
	})
}

// Attack 17: a peer never acknowledges the responses to its reads. The victim may serve only ReadIn reads at a time.
func TestAttack17ReadsNotAcknowledged(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		cv, _ := s.join(plain)
		for i := range plain.ReadIn {
			h := s.header(cv, proto.Data)
			h.Ack = cv.sent.Una
			s.strike(&h, readChunk(0, 0, 0, seq.Num(i)))
		}
		if cv.State() != Established || cv.resp.tail.Sub(cv.resp.ackedPos.Op) != plain.ReadIn || len(cv.resp.jobs) != plain.ReadIn {
			t.Fatalf("state %d, %d jobs of %d", cv.State(), cv.resp.tail.Sub(cv.resp.ackedPos.Op), len(cv.resp.jobs))
		}
		h := s.header(cv, proto.Data)
		s.strike(&h, readChunk(0, 0, 0, 99))
		s.broken(cv, proto.ReasonProtocol)
		s.finish()
	})
}

// Attack 18: messages longer than their receives, and pieces that do not fit together.
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
		{"whole message within another", [][]byte{sendChunk(0, 8, 0, 0), sendOnlyChunk(8)}, proto.ReasonProtocol, StatusFlushed},
		{"whole message that is not the last piece", [][]byte{{byte(proto.OpSendOnly), 0, 0, 1, 0}}, proto.ReasonProtocol, StatusFlushed},
		{"whole message too long", [][]byte{sendOnlyChunk(65)}, proto.ReasonLength, StatusLocalLength},
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

// Attack 18: in the middle of a write with immediate data, a message with the same number.
func TestAttack18MessageWithinWrite(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		for _, message := range [][]byte{sendChunk(proto.Last, 8, 0, 0), sendOnlyChunk(8)} {
			s := newModeSiege(t, keys)
			cv, _ := s.join(plain)
			mem := s.victim.memory(64)
			s.victim.postRecv(cv, mem.seg(0, 64), 7)
			at := mem.at(0)
			h := s.header(cv, proto.Data)
			s.strike(&h, writeImmChunk(0, 8, at.Key, at.Addr, 0, 0))
			if cv.State() != Established || cv.recv.immOff != 8 {
				t.Fatalf("state %d, %d bytes of the write", cv.State(), cv.recv.immOff)
			}
			h = s.header(cv, proto.Data)
			s.strike(&h, message)
			s.broken(cv, proto.ReasonProtocol)
			var c Completion
			if !s.victim.recv.Pop(&c) || c.Status != StatusFlushed || c.Cookie != 7 {
				t.Errorf("receive: %+v", c)
			}
			s.finish()
		}
	})
}

// Attack 18: the last piece of a message never comes. The message may keep its receive only while the peer is alive.
func TestAttack18LastPieceNeverSent(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		cv, _ := s.join(plain)
		mem := s.victim.memory(64)
		s.victim.postRecv(cv, mem.seg(0, 64), 7)
		for i := range uint32(8) {
			h := s.header(cv, proto.Data)
			s.strike(&h, sendChunk(0, 8, 0, i*8))
		}
		for range 1000 { // empty pieces are no progress and do no harm
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
	})
}
