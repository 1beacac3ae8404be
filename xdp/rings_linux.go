package xdp

import "sync/atomic"

// Ring says how full a ring of a socket is.
type Ring struct {
	Name       string // fill, rx, tx, completion
	Used, Size int    // slots
}

// KernelStats are the kernel's counts of one socket since it was opened (XDP_STATISTICS).
type KernelStats struct {
	RxDropped        uint64 // packets lost for other reasons than a full rx ring: no frame to receive into, or too long
	RxRingFull       uint64 // packets lost because the rx ring was full
	RxInvalidDescs   uint64 // slots of the fill ring that made no sense
	FillRingEmpty    uint64 // times the kernel looked for a frame and the fill ring had none: no loss in itself
	TxInvalidDescs   uint64 // slots of the tx ring that made no sense
	TxRingEmptyDescs uint64 // times the kernel looked for a packet and the tx ring had none: no loss
}

// Rings says how full the rings are now: frames that the kernel may receive into (fill), packets it has
// received (rx), packets it has not sent (tx), frames it has done with (completion). None on a closed
// socket. It reads what the rings share with the kernel and may be called by any goroutine.
func (s *Socket) Rings() []Ring {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 {
		return nil
	}
	return []Ring{s.fill.state("fill"), s.rx.state("rx"), s.tx.state("tx"), s.comp.state("completion")}
}

// state reads the shared words alone: the copies are the owner's.
func (r *ring) state(name string) Ring {
	consumed := atomic.LoadUint32(r.consumer) // first: it never passes the producer
	used := atomic.LoadUint32(r.producer) - consumed
	return Ring{Name: name, Used: int(min(used, r.size)), Size: int(r.size)}
}

// KernelStats reads the kernel's counts; on a closed socket they are the last. Any goroutine may call it.
//
// System calls: getsockopt.
func (s *Socket) KernelStats() KernelStats {
	k := s.kernelStats()
	return KernelStats{RxDropped: k.Rx_dropped, RxRingFull: k.Rx_ring_full, RxInvalidDescs: k.Rx_invalid_descs,
		FillRingEmpty: k.Rx_fill_ring_empty_descs, TxInvalidDescs: k.Tx_invalid_descs, TxRingEmptyDescs: k.Tx_ring_empty_descs}
}
