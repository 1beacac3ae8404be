package workload

import (
	"errors"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/dat"
)

// memory is the registered region of one side. It begins with the sources, which are buffers for data to send. The
// slots follow, which receive data: first the slots for RDMA (written by the peer, or by our reads), then the slots for
// messages.
type memory struct {
	bytes []byte
	lmr   *dat.LMR
	size  int
	// stride is the distance in bytes between the beginnings of two adjacent slots.
	stride int
	// shape applies to each connection.
	shape       shape
	connections int
	sources     [][]dat.LMRTriplet
	slots       [][]dat.LMRTriplet
}

// shape has the numbers of buffers and requests that one side of a row needs. A slot is a buffer that receives data.
//
//   - numSources is the number of buffers for data to send. All connections of a row share these buffers.
//   - rdmaSlots is the number of slots for RDMA, per connection.
//   - messageSlots is the number of slots for messages, per connection.
//   - numRequests is the number of outstanding requests, per connection.
type shape struct{ numSources, rdmaSlots, messageSlots, numRequests int }

// cacheLine is the alignment of slots in bytes.
const cacheLine = 64

// strideOf returns the distance in bytes between adjacent buffers for size bytes of data. Each buffer is large enough
// for a tally, even if the data is shorter.
func strideOf(size int) int { return (max(size, measure.TallySize) + cacheLine - 1) &^ (cacheLine - 1) }

// bytes returns the size of the region for a side of this shape.
func (sh shape) bytes(size, connections int) int64 {
	return int64(strideOf(size))*int64(sh.numSources+connections*(sh.rdmaSlots+sh.messageSlots)) + cacheLine
}

// newMemory registers buffers of size bytes. The kernel commits their pages as they are used.
func newMemory(a *Adapter, size, connections int, sh shape) (m *memory, err error) {
	m = &memory{size: size, stride: strideOf(size), shape: sh, connections: connections}
	if m.bytes, err = mapMemory(int(sh.bytes(size, connections))); err != nil {
		return nil, err
	}
	if m.lmr, err = a.IA.CreateLMR(m.bytes, a.pz, dat.MemAll); err != nil {
		return nil, errors.Join(err, unmapMemory(m.bytes))
	}
	for i := range sh.numSources {
		m.sources = append(m.sources, m.piece(i, size))
	}
	for i := range m.slotCount() {
		m.slots = append(m.slots, m.slotPiece(i, m.stride))
	}
	return m, nil
}

// free unmaps the memory, unless deregistering it failed: an engine may then still access it.
func (m *memory) free() error {
	if err := m.lmr.Free(); err != nil {
		return err
	}
	return unmapMemory(m.bytes)
}

// rdma returns the number of RDMA slots. The message slots follow them, connection by connection.
func (m *memory) rdma() int      { return m.shape.rdmaSlots * m.connections }
func (m *memory) slotCount() int { return m.rdma() + m.shape.messageSlots*m.connections }

func (m *memory) slotOffset(i int) int { return (m.shape.numSources + i) * m.stride }

// noteOffset is the offset of the last cache line. It is always zero and is the data of notification messages.
func (m *memory) noteOffset() int { return len(m.bytes) - cacheLine }

// source returns the data bytes of a source. slot returns all bytes of a slot.
func (m *memory) source(i int) []byte { return m.bytes[i*m.stride:][:m.size] }
func (m *memory) slot(i int) []byte   { return m.bytes[m.slotOffset(i):][:m.stride] }

// piece returns the segment of the first n bytes of a source. slotPiece does the same for a slot.
func (m *memory) piece(i, n int) []dat.LMRTriplet {
	return []dat.LMRTriplet{m.lmr.Segment(i*m.stride, n)}
}

func (m *memory) slotPiece(i, n int) []dat.LMRTriplet {
	return []dat.LMRTriplet{m.lmr.Segment(m.slotOffset(i), n)}
}

// remote returns the triplet with which the peer accesses the RDMA slots. Both sides have the same stride.
func (m *memory) remote() dat.RMRTriplet { return m.lmr.Remote(m.slotOffset(0), m.rdma()*m.stride) }

// remoteSlot returns the triplet of n bytes of one of the peer's RDMA slots.
func (c *Conn) remoteSlot(i, n int) dat.RMRTriplet {
	r := c.remote
	r.Address += uint64(i * c.mem.stride)
	r.Length = uint64(n)
	return r
}
