package wire

import (
	"bytes"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// chunk returns a chunk with n bytes of payload, each 0x66.
func chunk(size, n int, put func(b []byte)) []byte {
	b := bytes.Repeat([]byte{0x66}, size+n)
	put(b)
	return b
}

func sendChunk(f proto.ChunkFlags, n int, msn seq.Num, off uint32) []byte {
	return chunk(proto.SendSize, n, func(b []byte) { proto.PutSend(b, f, n, msn, off) })
}

func sendOnlyChunk(n int) []byte {
	return chunk(proto.SendOnlySize, n, func(b []byte) { proto.PutSendOnly(b, 0, n) })
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
