package dat

import "github.com/datxdp/datxdp/wire"

// This file has the InfiniBand extensions of uDAPL 2.0 (dat_ib_extensions.h): RDMA write with immediate data, and
// atomics. These operations complete with EventIBDTO, whether they succeed or fail.

// EventIBDTO is the completion of an extended operation (DAT_IB_DTO_EVENT). It has the fields of EventDTOCompletion and
// also Event.Ext, which is the kind of the operation. If the operation is a receive, Event.Imm is the immediate data.
//
// A peer can cause such an event at every receive: a write of length 0 needs no key. A consumer that does not use writes
// with immediate data has to treat the event as an error of the peer, and to post a receive of an SRQ again.
const EventIBDTO EventNumber = 0x40000

// MemRemoteAtomic allows atomics of peers (DAT_IB_MEM_PRIV_REMOTE_ATOMIC). An atomic needs MemRemoteRead and
// MemRemoteWrite too. MemAll does not include MemRemoteAtomic.
const MemRemoteAtomic MemPriv = 0x40

// Kinds of extended operations (DAT_IB_DTOS).
const (
	DTORDMAWriteImm DTO = 8
	DTOReceiveImm   DTO = 9 // a receive consumed by a PostRDMAWriteImm of the peer
	DTOFetchAdd     DTO = 10
	DTOCmpSwap      DTO = 11
)

// ExtType is the kind of an extended completion (DAT_IB_EXT_TYPE).
type ExtType uint8

// Kinds of extended completions.
const (
	ExtFetchAdd         ExtType = 0
	ExtCmpSwap          ExtType = 1
	ExtRDMAWriteImm     ExtType = 2 // at the requester
	ExtRDMAWriteImmData ExtType = 3 // at the receiver
)

// atomicSize is the size in bytes of the operand of an atomic.
const atomicSize = 8

// PostRDMAWriteImm is PostRDMAWrite with immediate data (dat_ib_post_rdma_write_immed). Like a message, the write
// consumes a receive of the peer. The completion of that receive carries imm; the memory of the receive is not written.
// When the peer takes that completion, the data of this write and of all earlier writes is in the peer's memory.
//
// Both sides get EventIBDTO with the length of the write. Event.Ext is ExtRDMAWriteImm here and ExtRDMAWriteImmData at
// the peer. A write of 0 bytes is legal. Flags and errors are those of PostRDMAWrite, except that
// CompletionSolicitedWait is legal too.
func (ep *EP) PostRDMAWriteImm(iov []LMRTriplet, cookie uint64, remote RMRTriplet, imm uint32, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags|CompletionSolicitedWait) {
		return errFlags7
	}
	if total(iov) > remote.Length {
		return errShort
	}
	return ep.finishPost(ep.conn.PostWriteImm(wireSegments(iov), cookie, remote.toWire(), imm, wire.WorkFlags(flags)))
}

// PostFetchAdd posts an atomic operation that adds a number to a 64-bit word of the peer's memory, modulo 2^64
// (dat_ib_post_fetch_and_add). The word is the first 8 bytes of the range that the argument remote names; these bytes
// must be aligned to 8 bytes. The old value of the word goes to the first 8 bytes of the segment that the argument
// local names; these bytes need no alignment. Each side uses its host's byte order. The operation executes exactly
// once. It is atomic with respect to all atomic operations on memory of the peer's adapter, and to sync/atomic in the
// peer's process.
//
// Atomics count as RDMA reads: MaxRDMAReadOut and MaxRDMAReadIn limit the sum of atomics and reads, and a request with
// CompletionBarrierFence waits for both. The peer's memory region needs MemRemoteAtomic, MemRemoteRead and
// MemRemoteWrite. If the region lacks a privilege or the word is misaligned, the atomic completes with DTORemoteAccess
// and the connection breaks. A successful PostFetchAdd completes with EventIBDTO, ExtFetchAdd and length 8.
//
// PostFetchAdd returns ErrLengthError if remote or local is shorter than 8 bytes. Its other errors are those of
// PostRDMARead.
func (ep *EP) PostFetchAdd(add uint64, local LMRTriplet, cookie uint64, remote RMRTriplet, flags CompletionFlags) error {
	if err := ep.atomic(&local, &remote); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags6
	}
	return ep.finishPost(ep.conn.PostFetchAdd(add, wire.Segment(local), cookie, remote.toWire(), wire.WorkFlags(flags)))
}

// PostCmpSwap posts an atomic on a 64-bit word of the peer's memory (dat_ib_post_cmp_and_swap). If the word equals the
// argument compare, the word gets the value of the argument swap. Otherwise the word keeps its value. In both cases,
// the old value of the word goes to the segment that the argument local names. A successful PostCmpSwap completes with
// ExtCmpSwap. Everything else is as in PostFetchAdd.
func (ep *EP) PostCmpSwap(compare, swap uint64, local LMRTriplet, cookie uint64, remote RMRTriplet, flags CompletionFlags) error {
	if err := ep.atomic(&local, &remote); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags7
	}
	return ep.finishPost(ep.conn.PostCmpSwap(compare, swap, wire.Segment(local), cookie, remote.toWire(), wire.WorkFlags(flags)))
}

// atomic makes the checks that all posts of atomics have in common.
func (ep *EP) atomic(local *LMRTriplet, remote *RMRTriplet) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if local.Length < atomicSize || remote.Length < atomicSize {
		return errShort
	}
	return nil
}

func (r RMRTriplet) toWire() wire.Remote { return wire.Remote{Key: r.Context, Addr: r.Address} }

// extend turns ev into an EventIBDTO if c is the completion of an extended operation. Otherwise it does nothing.
func (ev *Event) extend(c *wire.Completion) {
	switch c.Op {
	case wire.OpFetchAdd:
		ev.Ext = ExtFetchAdd
	case wire.OpCmpSwap:
		ev.Ext = ExtCmpSwap
	case wire.OpWriteImm:
		ev.Ext = ExtRDMAWriteImm
	case wire.OpRecvImm:
		ev.Ext, ev.Imm = ExtRDMAWriteImmData, c.Data
	default:
		return
	}
	ev.Number = EventIBDTO
}
