package proto

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeaderLayout(t *testing.T) {
	h := Header{Type: Data, Flags: AckRequest | SourcePort, CE: 0x0102, CID: 0x03040506, PSN: 0x0708090a,
		Ack: 0x0b0c0d0e, Credit: 0x0f101112, TS: 0x13141516, Echo: 0x1718191a, Tag: 0x1b1c1d1e}
	var b [HeaderSize]byte
	h.Put(b[:])
	want := [HeaderSize]byte{0x21, 0x81, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
		19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}
	if b != want {
		t.Errorf("header is\n% x, want\n% x", b, want)
	}
	var got Header
	if !got.Parse(b[:]) || got != h {
		t.Errorf("read back as %+v, want %+v", got, h)
	}
}

func TestHeaderRefuses(t *testing.T) {
	var h Header
	good := make([]byte, HeaderSize)
	(&Header{Type: Ack}).Put(good)
	for name, b := range map[string][]byte{
		"short":         good[:HeaderSize-1],
		"version 1":     append([]byte{0x12}, good[1:]...),
		"version 3":     append([]byte{0x32}, good[1:]...),
		"type 0":        append([]byte{Version << 4}, good[1:]...),
		"unknown type":  append([]byte{Version<<4 | 0xf}, good[1:]...),
		"nothing":       nil,
		"first unknown": append([]byte{Version<<4 | byte(numTypes)}, good[1:]...),
	} {
		if h.Parse(b) {
			t.Errorf("%s: accepted", name)
		}
	}
	if !h.Parse(good) {
		t.Error("a good header was refused")
	}
}

func TestChunkLayout(t *testing.T) {
	for _, tc := range []struct {
		name string
		size int
		put  func([]byte)
		want Chunk
		raw  []byte
	}{
		{"ready", ReadySize, PutReady, Chunk{Op: OpReady, Flags: Last}, []byte{1, 1, 0, 0}},
		{"send", SendSize, func(b []byte) { PutSend(b, Last|Solicited, 0x102, 3, 4) },
			Chunk{Op: OpSend, Flags: Last | Solicited, Len: 0x102, Num: 3, Off: 4},
			[]byte{2, 3, 1, 2, 0, 0, 0, 3, 0, 0, 0, 4}},
		{"send only", SendOnlySize, func(b []byte) { PutSendOnly(b, Solicited, 0x102) },
			Chunk{Op: OpSendOnly, Flags: Last | Solicited, Len: 0x102}, []byte{10, 3, 1, 2}},
		{"write", WriteSize, func(b []byte) { PutWrite(b, 0, 5, 6, 7) },
			Chunk{Op: OpWrite, Len: 5, Key: 6, Addr: 7},
			[]byte{3, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7}},
		{"read request", ReadReqSize, func(b []byte) { PutReadReq(b, 8, 9, 10, 11) },
			Chunk{Op: OpReadReq, Flags: Last, Key: 8, Addr: 9, Size: 10, Num: 11},
			[]byte{4, 1, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0, 11}},
		{"read response", ReadRespSize, func(b []byte) { PutReadResp(b, Last, 12, 13, 14) },
			Chunk{Op: OpReadResp, Flags: Last, Len: 12, Num: 13, Off: 14},
			[]byte{5, 1, 0, 12, 0, 0, 0, 13, 0, 0, 0, 14}},
		{"send with invalidate", SendInvSize, func(b []byte) { PutSendInv(b, Last, 15, 16, 17, 18) },
			Chunk{Op: OpSendInv, Flags: Last, Len: 15, Num: 16, Off: 17, Key: 18},
			[]byte{6, 1, 0, 15, 0, 0, 0, 16, 0, 0, 0, 17, 0, 0, 0, 18}},
		{"write with immediate data", WriteImmSize, func(b []byte) { PutWriteImm(b, Last|Solicited, 5, 6, 7, 8, 9, 10) },
			Chunk{Op: OpWriteImm, Flags: Last | Solicited, Len: 5, Key: 6, Addr: 7, Num: 8, Off: 9, Imm: 10},
			[]byte{7, 3, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 10}},
		{"atomic request", AtomicReqSize, func(b []byte) { PutAtomicReq(b, Compare, 6, 7, 8, 9, 10) },
			Chunk{Op: OpAtomicReq, Flags: Last | Compare, Key: 6, Addr: 7, Num: 8, Value: 9, Comp: 10},
			[]byte{8, 5, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8,
				0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 10}},
		{"atomic response", AtomicRespSize, func(b []byte) { PutAtomicResp(b, 11, 12) },
			Chunk{Op: OpAtomicResp, Flags: Last, Num: 11, Value: 12},
			[]byte{9, 1, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0, 12}},
	} {
		b := make([]byte, tc.size)
		tc.put(b)
		if !bytes.Equal(b, tc.raw) {
			t.Errorf("%s is % x, want % x", tc.name, b, tc.raw)
		}
		var got Chunk
		got.Parse(b)
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}

func FuzzHeader(f *testing.F) {
	b := make([]byte, HeaderSize)
	(&Header{Type: Data, CID: 1, PSN: 2, Ack: 3}).Put(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Header
		if !h.Parse(b) {
			return
		}
		var again [HeaderSize]byte
		h.Put(again[:])
		if !bytes.Equal(again[:], b[:HeaderSize]) {
			t.Fatalf("% x became % x", b[:HeaderSize], again)
		}
	})
}

func FuzzChunk(f *testing.F) {
	for op := byte(1); op < byte(numOps); op++ {
		f.Add(append([]byte{op, 1, 0, 4}, make([]byte, 32)...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		n := ChunkSize(b[0])
		if n == 0 || n > len(b) {
			return
		}
		in := bytes.Clone(b[:n])
		var c Chunk
		c.Parse(in)
		out := make([]byte, n)
		switch c.Op {
		case OpSend:
			PutSend(out, c.Flags, c.Len, c.Num, c.Off)
		case OpSendOnly:
			in[1] |= byte(Last)
			PutSendOnly(out, c.Flags, c.Len)
		case OpWrite:
			PutWrite(out, c.Flags, c.Len, c.Key, c.Addr)
		case OpReadResp:
			PutReadResp(out, c.Flags, c.Len, c.Num, c.Off)
		case OpSendInv:
			PutSendInv(out, c.Flags, c.Len, c.Num, c.Off, c.Key)
		case OpWriteImm:
			PutWriteImm(out, c.Flags, c.Len, c.Key, c.Addr, c.Num, c.Off, c.Imm)
		case OpReadReq, OpAtomicReq, OpAtomicResp: // flags or length are fixed
			copy(in[1:4], []byte{byte(Last | c.Flags&Compare), 0, 0})
			switch c.Op {
			case OpReadReq:
				in[1] = byte(Last)
				PutReadReq(out, c.Key, c.Addr, c.Size, c.Num)
			case OpAtomicReq:
				PutAtomicReq(out, c.Flags&Compare, c.Key, c.Addr, c.Num, c.Value, c.Comp)
			default:
				in[1] = byte(Last)
				PutAtomicResp(out, c.Num, c.Value)
			}
		default:
			return // flags and length are fixed
		}
		if !bytes.Equal(out, in) {
			t.Fatalf("% x became % x", in, out)
		}
	})
}

func FuzzGoodbye(f *testing.F) {
	b := make([]byte, GoodbyeSize)
	(&Goodbye{CID: 1, Reason: ReasonAccess, Num: 2, Op: OpReadResp}).Put(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var g, again Goodbye
		if !g.Parse(b) {
			return
		}
		var out [GoodbyeSize]byte
		g.Put(out[:])
		if !again.Parse(out[:]) || again != g {
			t.Fatalf("%+v became %+v", g, again)
		}
	})
}
