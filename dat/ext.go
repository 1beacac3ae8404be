package dat

import "github.com/datxdp/datxdp/wire"

// The InfiniBand extensions of uDAPL 2.0 (dat_ib_extensions.h) are RDMA write with immediate data, and atomics. Each
// completes with EventIBDTO, whether it succeeds or fails.

// EventIBDTO is the completion of an extended operation (DAT_IB_DTO_EVENT). It has the fields of EventDTOCompletion.
// Event.Ext is the kind of the operation, and Event.Imm the immediate data that a receive got.
const EventIBDTO EventNumber = 0x40000

// MemRemoteAtomic allows atomics of peers (DAT_IB_MEM_PRIV_REMOTE_ATOMIC). An atomic needs MemRemoteRead and
// MemRemoteWrite too. MemAll does not include it.
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

// PostRDMAWriteImm is PostRDMAWrite with immediate data (dat_ib_post_rdma_write_immed). Like a message, it consumes a
// receive of the peer. The completion of that receive delivers imm; the receive's buffer is not written. When the
// peer takes that completion, the data of this write and of all earlier writes is in place.
//
// Both sides get EventIBDTO with the length of the write: ExtRDMAWriteImm here, ExtRDMAWriteImmData at the peer. A
// write of 0 bytes is legal. Flags and errors are those of PostRDMAWrite; CompletionSolicitedWait is legal too.
func (ep *EP) PostRDMAWriteImm(iov []LMRTriplet, cookie uint64, to RMRTriplet, imm uint32, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags|CompletionSolicitedWait) {
		return errFlags7
	}
	if total(iov) > to.Length {
		return errShort
	}
	return ep.posted(ep.conn.PostWriteImm(segments(iov), cookie, to.remote(), imm, wire.WorkFlags(flags)))
}

// PostFetchAdd adds to a 64-bit word of the peer's memory, modulo 2^64 (dat_ib_post_fetch_and_add). The word is at
// the start of the range at, and must be aligned to 8 bytes. Its old value goes to the first 8 bytes of local, which
// need no alignment. Each side uses its host's byte order. The operation executes exactly once. It is atomic with
// respect to all atomics on memory of the peer's adapter, and to sync/atomic in the peer's process.
//
// An atomic counts as an RDMA read: MaxRDMAReadOut and MaxRDMAReadIn limit both together, and CompletionBarrierFence
// waits for both. The peer's region needs MemRemoteAtomic, MemRemoteRead and MemRemoteWrite. If a privilege is
// missing or the word is misaligned, the atomic completes with DTORemoteAccess and the connection breaks. A
// successful one completes with EventIBDTO, ExtFetchAdd and length 8.
//
// It returns ErrLengthError if either range is shorter than 8 bytes. Other errors are those of PostRDMARead.
func (ep *EP) PostFetchAdd(add uint64, local LMRTriplet, cookie uint64, at RMRTriplet, flags CompletionFlags) error {
	if err := ep.atomic(&local, &at); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags6
	}
	return ep.posted(ep.conn.PostFetchAdd(add, wire.Segment(local), cookie, at.remote(), wire.WorkFlags(flags)))
}

// PostCmpSwap compares a 64-bit word of the peer's memory with compare and, if they are equal, replaces it by swap
// (dat_ib_post_cmp_and_swap). In both cases local gets the old value. Everything else is as in PostFetchAdd, except
// that a successful operation completes with ExtCmpSwap.
func (ep *EP) PostCmpSwap(compare, swap uint64, local LMRTriplet, cookie uint64, at RMRTriplet, flags CompletionFlags) error {
	if err := ep.atomic(&local, &at); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags7
	}
	return ep.posted(ep.conn.PostCmpSwap(compare, swap, wire.Segment(local), cookie, at.remote(), wire.WorkFlags(flags)))
}

// atomic makes the checks that all posts of atomics have in common.
func (ep *EP) atomic(local *LMRTriplet, at *RMRTriplet) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if local.Length < atomicSize || at.Length < atomicSize {
		return errShort
	}
	return nil
}

func (r RMRTriplet) remote() wire.Remote { return wire.Remote{Key: r.Context, Addr: r.Address} }

// extend makes ev an EventIBDTO if c is the completion of an extended operation. Other events stay as they are.
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
