package proto

import (
	"encoding/binary"

	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Op is the operation of a chunk.
type Op uint8

// Chunk operations.
const (
	OpReady      Op = 1 + iota // first packet of the active side: ends the handshake
	OpSend                     // a piece of a message
	OpWrite                    // a piece of an RDMA write
	OpReadReq                  // request of an RDMA read
	OpReadResp                 // a piece of the response to an RDMA read
	OpSendInv                  // the last piece of a message that invalidates a window
	OpWriteImm                 // a piece of an RDMA write with immediate data
	OpAtomicReq                // request of an atomic
	OpAtomicResp               // response to an atomic
	OpSendOnly                 // a whole message
	numOps
)

// ChunkFlags are the flags of a chunk. Their meaning depends on Op.
type ChunkFlags uint8

const (
	Last      ChunkFlags = 1 << iota // the last piece of its operation
	Solicited                        // OpSend, OpSendInv, OpSendOnly, OpWriteImm: the sender asks for a notification
	Compare                          // OpAtomicReq: compare and swap; without it: fetch and add
)

// Answer reports whether a chunk carries a response.
func (o Op) Answer() bool { return o == OpReadResp || o == OpAtomicResp }

// Sizes of chunk headers in bytes. Every chunk begins with {op, flags, length of the payload after the header}.
const (
	chunkCommon    = 4
	ReadySize      = chunkCommon
	SendSize       = chunkCommon + 8  // message number, offset in the message
	WriteSize      = chunkCommon + 12 // key, address
	ReadReqSize    = chunkCommon + 20 // key, address, length, read number
	ReadRespSize   = chunkCommon + 8  // read number, offset in the read
	WriteImmSize   = chunkCommon + 24 // key, address, message number, offset in the write, immediate data
	AtomicReqSize  = chunkCommon + 32 // key, address, read number, operand, comparand
	AtomicRespSize = chunkCommon + 12 // read number, old value
	SendInvSize    = chunkCommon + 12 // message number, offset in the message, key
	SendOnlySize   = chunkCommon
	MaxChunkSize   = AtomicReqSize
	MaxChunkBytes  = 1<<16 - 1 // payload of one chunk
)

var opSize = [numOps]int{OpReady: ReadySize, OpSend: SendSize, OpWrite: WriteSize,
	OpReadReq: ReadReqSize, OpReadResp: ReadRespSize, OpSendInv: SendInvSize, OpWriteImm: WriteImmSize,
	OpAtomicReq: AtomicReqSize, OpAtomicResp: AtomicRespSize, OpSendOnly: SendOnlySize}

// ChunkSize returns the size of a chunk header whose first byte is op, or 0 if op is unknown.
func ChunkSize(op byte) int {
	if op >= byte(numOps) {
		return 0
	}
	return opSize[op]
}

// Chunk is a parsed chunk header. Op decides which fields are valid.
type Chunk struct {
	Op    Op
	Flags ChunkFlags
	Len   int     // payload bytes after the header
	Num   seq.Num // OpSend, OpSendInv, OpWriteImm: message number; OpReadReq, OpReadResp, atomics: read number
	Off   uint32  // OpSend, OpSendInv, OpWriteImm, OpReadResp: offset of this piece
	Key   uint32  // OpWrite, OpWriteImm, OpReadReq, OpAtomicReq, OpSendInv
	Addr  uint64  // OpWrite, OpWriteImm, OpReadReq, OpAtomicReq
	Size  uint32  // OpReadReq: bytes to read
	Imm   uint32  // OpWriteImm: immediate data
	Value uint64  // OpAtomicReq: operand to add or swap in; OpAtomicResp: old value
	Comp  uint64  // OpAtomicReq with Compare: expected value
}

// PutSend writes an OpSend header into the first SendSize bytes of b.
func PutSend(b []byte, f ChunkFlags, n int, msn seq.Num, off uint32) {
	p := (*[SendSize]byte)(b)
	putCommon(p[:], OpSend, f, n)
	binary.BigEndian.PutUint32(p[4:], uint32(msn))
	binary.BigEndian.PutUint32(p[8:], off)
}

// PutWrite writes an OpWrite header into the first WriteSize bytes of b.
func PutWrite(b []byte, f ChunkFlags, n int, key uint32, addr uint64) {
	p := (*[WriteSize]byte)(b)
	putCommon(p[:], OpWrite, f, n)
	binary.BigEndian.PutUint32(p[4:], key)
	binary.BigEndian.PutUint64(p[8:], addr)
}

// PutReadReq writes an OpReadReq header into the first ReadReqSize bytes of b.
func PutReadReq(b []byte, key uint32, addr uint64, size uint32, num seq.Num) {
	p := (*[ReadReqSize]byte)(b)
	putCommon(p[:], OpReadReq, Last, 0)
	binary.BigEndian.PutUint32(p[4:], key)
	binary.BigEndian.PutUint64(p[8:], addr)
	binary.BigEndian.PutUint32(p[16:], size)
	binary.BigEndian.PutUint32(p[20:], uint32(num))
}

// PutReadResp writes an OpReadResp header into the first ReadRespSize bytes of b.
func PutReadResp(b []byte, f ChunkFlags, n int, num seq.Num, off uint32) {
	p := (*[ReadRespSize]byte)(b)
	putCommon(p[:], OpReadResp, f, n)
	binary.BigEndian.PutUint32(p[4:], uint32(num))
	binary.BigEndian.PutUint32(p[8:], off)
}

// PutSendInv writes an OpSendInv header into the first SendInvSize bytes of b.
func PutSendInv(b []byte, f ChunkFlags, n int, msn seq.Num, off, key uint32) {
	p := (*[SendInvSize]byte)(b)
	putCommon(p[:], OpSendInv, f, n)
	binary.BigEndian.PutUint32(p[4:], uint32(msn))
	binary.BigEndian.PutUint32(p[8:], off)
	binary.BigEndian.PutUint32(p[12:], key)
}

// PutWriteImm writes an OpWriteImm header into the first WriteImmSize bytes of b.
func PutWriteImm(b []byte, f ChunkFlags, n int, key uint32, addr uint64, msn seq.Num, off, imm uint32) {
	p := (*[WriteImmSize]byte)(b)
	putCommon(p[:], OpWriteImm, f, n)
	binary.BigEndian.PutUint32(p[4:], key)
	binary.BigEndian.PutUint64(p[8:], addr)
	binary.BigEndian.PutUint32(p[16:], uint32(msn))
	binary.BigEndian.PutUint32(p[20:], off)
	binary.BigEndian.PutUint32(p[24:], imm)
}

// PutAtomicReq writes an OpAtomicReq header into the first AtomicReqSize bytes of b. f is Compare or 0.
func PutAtomicReq(b []byte, f ChunkFlags, key uint32, addr uint64, num seq.Num, value, comp uint64) {
	p := (*[AtomicReqSize]byte)(b)
	putCommon(p[:], OpAtomicReq, f|Last, 0)
	binary.BigEndian.PutUint32(p[4:], key)
	binary.BigEndian.PutUint64(p[8:], addr)
	binary.BigEndian.PutUint32(p[16:], uint32(num))
	binary.BigEndian.PutUint64(p[20:], value)
	binary.BigEndian.PutUint64(p[28:], comp)
}

// PutAtomicResp writes an OpAtomicResp header into the first AtomicRespSize bytes of b.
func PutAtomicResp(b []byte, num seq.Num, old uint64) {
	p := (*[AtomicRespSize]byte)(b)
	putCommon(p[:], OpAtomicResp, Last, 0)
	binary.BigEndian.PutUint32(p[4:], uint32(num))
	binary.BigEndian.PutUint64(p[8:], old)
}

// PutSendOnly writes an OpSendOnly header into the first SendOnlySize bytes of b. f is Solicited or 0.
func PutSendOnly(b []byte, f ChunkFlags, n int) { putCommon(b[:SendOnlySize], OpSendOnly, f|Last, n) }

// PutReady writes an OpReady header into the first ReadySize bytes of b.
func PutReady(b []byte) { putCommon(b[:ReadySize], OpReady, Last, 0) }

func putCommon(b []byte, op Op, f ChunkFlags, n int) {
	_ = b[3]
	b[0], b[1] = byte(op), byte(f)
	binary.BigEndian.PutUint16(b[2:], uint16(n))
}

// Parse reads the chunk header in b, which must have ChunkSize(b[0]) bytes and a known op.
func (c *Chunk) Parse(b []byte) {
	c.Op, c.Flags = Op(b[0]), ChunkFlags(b[1])
	c.Len = int(binary.BigEndian.Uint16(b[2:]))
	switch c.Op {
	case OpSend, OpReadResp:
		p := (*[SendSize]byte)(b)
		c.Num = seq.Num(binary.BigEndian.Uint32(p[4:]))
		c.Off = binary.BigEndian.Uint32(p[8:])
	case OpWrite:
		p := (*[WriteSize]byte)(b)
		c.Key = binary.BigEndian.Uint32(p[4:])
		c.Addr = binary.BigEndian.Uint64(p[8:])
	case OpReadReq:
		p := (*[ReadReqSize]byte)(b)
		c.Key = binary.BigEndian.Uint32(p[4:])
		c.Addr = binary.BigEndian.Uint64(p[8:])
		c.Size = binary.BigEndian.Uint32(p[16:])
		c.Num = seq.Num(binary.BigEndian.Uint32(p[20:]))
	case OpSendInv:
		p := (*[SendInvSize]byte)(b)
		c.Num = seq.Num(binary.BigEndian.Uint32(p[4:]))
		c.Off = binary.BigEndian.Uint32(p[8:])
		c.Key = binary.BigEndian.Uint32(p[12:])
	case OpWriteImm:
		p := (*[WriteImmSize]byte)(b)
		c.Key = binary.BigEndian.Uint32(p[4:])
		c.Addr = binary.BigEndian.Uint64(p[8:])
		c.Num = seq.Num(binary.BigEndian.Uint32(p[16:]))
		c.Off = binary.BigEndian.Uint32(p[20:])
		c.Imm = binary.BigEndian.Uint32(p[24:])
	case OpAtomicReq:
		p := (*[AtomicReqSize]byte)(b)
		c.Key = binary.BigEndian.Uint32(p[4:])
		c.Addr = binary.BigEndian.Uint64(p[8:])
		c.Num = seq.Num(binary.BigEndian.Uint32(p[16:]))
		c.Value = binary.BigEndian.Uint64(p[20:])
		c.Comp = binary.BigEndian.Uint64(p[28:])
	case OpAtomicResp:
		p := (*[AtomicRespSize]byte)(b)
		c.Num = seq.Num(binary.BigEndian.Uint32(p[4:]))
		c.Value = binary.BigEndian.Uint64(p[8:])
	default: // OpReady and OpSendOnly have no more fields
	}
}
