package workload

import (
	"errors"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/dat"
)

// memory is one side's registered region: sources of what it sends, then slots for what arrives. The
// first slots take RDMA writes and answers to reads, the last take messages.
type memory struct {
	bytes []byte
	lmr   *dat.LMR
	size  int
	// stride is from one slot to the next.
	stride int
	// shape is of one connection, and there are so many of them.
	shape       shape
	connections int
	sources     [][]dat.LMRTriplet
	slots       [][]dat.LMRTriplet
}

// shape is how many buffers and requests a side of a row needs: sources, slots for RDMA, slots for
// messages, and requests outstanding. Connections of a row share the sources and have the rest each.
type shape struct{ sources, rdma, messages, requests int }

// cacheLine in bytes; slots begin on one.
const cacheLine = 64

// strideOf is from one buffer of size bytes to the next: each has room for a tally.
func strideOf(size int) int { return (max(size, measure.TallySize) + cacheLine - 1) &^ (cacheLine - 1) }

// bytes is what newMemory takes for a side of that shape.
func (sh shape) bytes(size, connections int) int64 {
	return int64(strideOf(size))*int64(sh.sources+connections*(sh.rdma+sh.messages)) + cacheLine
}

// newMemory registers buffers of size bytes. The kernel commits them page by page, as they are used.
func newMemory(a *Adapter, size, connections int, sh shape) (m *memory, err error) {
	m = &memory{size: size, stride: strideOf(size), shape: sh, connections: connections}
	if m.bytes, err = mapMemory(int(sh.bytes(size, connections))); err != nil {
		return nil, err
	}
	if m.lmr, err = a.IA.CreateLMR(m.bytes, a.pz, dat.MemAll); err != nil {
		return nil, errors.Join(err, unmapMemory(m.bytes))
	}
	for i := range sh.sources {
		m.sources = append(m.sources, m.piece(i, size))
	}
	for i := range m.slotCount() {
		m.slots = append(m.slots, m.slotPiece(i, m.stride))
	}
	return m, nil
}

// free gives the memory back to the kernel, unless an engine may still touch it.
func (m *memory) free() error {
	if err := m.lmr.Free(); err != nil {
		return err
	}
	return unmapMemory(m.bytes)
}

// rdma is how many slots take RDMA: those of messages follow them, connection by connection.
func (m *memory) rdma() int      { return m.shape.rdma * m.connections }
func (m *memory) slotCount() int { return m.rdma() + m.shape.messages*m.connections }

func (m *memory) slotOffset(i int) int { return (m.shape.sources + i) * m.stride }

// noteOffset is the last line: what short messages that only say "next" are made of. It stays zero.
func (m *memory) noteOffset() int { return len(m.bytes) - cacheLine }

// source is the bytes of one source; slot those of one slot, whole.
func (m *memory) source(i int) []byte { return m.bytes[i*m.stride:][:m.size] }
func (m *memory) slot(i int) []byte   { return m.bytes[m.slotOffset(i):][:m.stride] }

// piece is n bytes of a source, slotPiece n bytes of a slot.
func (m *memory) piece(i, n int) []dat.LMRTriplet {
	return []dat.LMRTriplet{m.lmr.Segment(i*m.stride, n)}
}

func (m *memory) slotPiece(i, n int) []dat.LMRTriplet {
	return []dat.LMRTriplet{m.lmr.Segment(m.slotOffset(i), n)}
}

// remote names the slots for RDMA to the peer; both sides have the same stride.
func (m *memory) remote() dat.RMRTriplet { return m.lmr.Remote(m.slotOffset(0), m.rdma()*m.stride) }

// remoteSlot is n bytes of one of the peer's slots for RDMA.
func (c *Conn) remoteSlot(i, n int) dat.RMRTriplet {
	r := c.remote
	r.Address += uint64(i * c.mem.stride)
	r.Length = uint64(n)
	return r
}
