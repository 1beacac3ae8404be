package xdp

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ringSet has the rings that a socket shares with the kernel, and the numbers of frames that they may hold.
type ringSet struct {
	rx    consumer[desc]
	tx    producer[desc]
	fill  producer[uint64]
	comp  consumer[uint64]
	level fillLevel // decides how many frames the kernel has for reception
	txMax uint32    // largest number of frames allocated or in transmission
}

// kernelCounters are the kernel's counters of a socket.
type kernelCounters struct {
	kernelMu sync.Mutex         // locked after Socket.mu
	kernel   unix.XDPStatistics // last values read, including past
	past     unix.XDPStatistics // counters of earlier kernel sockets, see reopen
}

// Ring is the fill level of one ring of a socket.
type Ring struct {
	Name       string // fill, rx, tx, completion
	Used, Size int    // slots
}

// KernelStats are the kernel's counters of one socket since it was opened (XDP_STATISTICS).
type KernelStats struct {
	RxDropped        uint64 // packets lost for other reasons than a full rx ring: no frame for reception, or too long
	RxRingFull       uint64 // packets lost because the rx ring was full
	RxInvalidDescs   uint64 // invalid slots of the fill ring
	FillRingEmpty    uint64 // how often the kernel found the fill ring empty; no loss in itself
	TxInvalidDescs   uint64 // invalid slots of the tx ring
	TxRingEmptyDescs uint64 // how often the kernel found the tx ring empty; no loss
}

// Rings returns the current level of each ring, in slots. It returns nil if the socket is closed. The rings are:
//
//   - fill: empty frames for the kernel to receive into
//   - rx: received packets
//   - tx: packets to transmit
//   - completion: transmitted frames
//
// Any goroutine may call it, because it reads only words that are shared with the kernel.
func (s *Socket) Rings() []Ring {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 {
		return nil
	}
	return []Ring{s.fill.state("fill"), s.rx.state("rx"), s.tx.state("tx"), s.comp.state("completion")}
}

// state reads only the shared words, because the local copies belong to the owner.
func (r *ring) state(name string) Ring {
	consumed := atomic.LoadUint32(r.consumer) // read first, so that it cannot pass the producer
	used := atomic.LoadUint32(r.producer) - consumed
	return Ring{Name: name, Used: int(min(used, r.size)), Size: int(r.size)}
}

// KernelStats reads the kernel's counters. On a closed socket it returns the last values. Any goroutine may call it.
//
// System calls: getsockopt.
func (s *Socket) KernelStats() KernelStats {
	k := s.kernelStats()
	return KernelStats{RxDropped: k.Rx_dropped, RxRingFull: k.Rx_ring_full, RxInvalidDescs: k.Rx_invalid_descs,
		FillRingEmpty: k.Rx_fill_ring_empty_descs, TxInvalidDescs: k.Tx_invalid_descs, TxRingEmptyDescs: k.Tx_ring_empty_descs}
}
