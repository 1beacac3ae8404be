package dat

import "github.com/datxdp/datxdp/wire"

// The InfiniBand extensions of uDAPL 2.0 (dat_ib_extensions.h): RDMA write with immediate data, and
// atomics. Their completions are EventIBDTO, also when they fail.

// EventIBDTO is the completion of an extended data transfer (DAT_IB_DTO_EVENT). Beside the fields of
// EventDTOCompletion, Event.Ext says which, and Event.Imm is the immediate data of one received.
const EventIBDTO EventNumber = 0x40000

// MemRemoteAtomic allows peers atomics (DAT_IB_MEM_PRIV_REMOTE_ATOMIC), where MemRemoteRead and
// MemRemoteWrite are given too. It is not in MemAll.
const MemRemoteAtomic MemPriv = 0x40

// Extended data transfers (DAT_IB_DTOS).
const (
	DTORDMAWriteImm DTO = 8
	DTOReceiveImm   DTO = 9 // a receive that the peer's PostRDMAWriteImm has consumed
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

// atomicSize is the size in bytes of the word of an atomic.
const atomicSize = 8

// PostRDMAWriteImm is PostRDMAWrite whose completion at the peer consumes a receive there, as a
// message does, and delivers imm with it (dat_ib_post_rdma_write_immed). The receive's buffer is not
// written; when its completion is taken, the data of this write and of all before it is in place.
//
// Both ends get EventIBDTO, with ExtRDMAWriteImm here and ExtRDMAWriteImmData there, and the length of
// the write; no bytes are legal. Flags and errors are those of PostRDMAWrite, and
// CompletionSolicitedWait is legal.
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

// PostFetchAdd adds to the 64-bit word at the start of a range of the peer's memory, modulo 2^64, and
// stores what the word was before in the first 8 bytes of local (dat_ib_post_fetch_and_add): both in
// the byte order of their host. The word must be aligned to 8 bytes, local need not be. It is atomic
// against all atomics on memory of the peer's adapter, and against sync/atomic there, and done once.
//
// It takes the place of an RDMA read: MaxRDMAReadOut and MaxRDMAReadIn bound both together, and
// CompletionBarrierFence waits for both. The peer's region needs MemRemoteAtomic, MemRemoteRead and
// MemRemoteWrite; without, or misaligned, it completes as DTORemoteAccess and the connection breaks.
// Success is EventIBDTO with ExtFetchAdd and length 8.
//
// ErrLengthError if either range is shorter than 8 bytes; further errors are those of PostRDMARead.
func (ep *EP) PostFetchAdd(add uint64, local LMRTriplet, cookie uint64, at RMRTriplet, flags CompletionFlags) error {
	if err := ep.atomic(&local, &at); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags6
	}
	return ep.posted(ep.conn.PostFetchAdd(add, wire.Segment(local), cookie, at.remote(), wire.WorkFlags(flags)))
}

// PostCmpSwap replaces the 64-bit word at the start of a range of the peer's memory by swap if it equals
// compare, and stores what the word was before in local in either case (dat_ib_post_cmp_and_swap). All
// else is as with PostFetchAdd; success has ExtCmpSwap.
func (ep *EP) PostCmpSwap(compare, swap uint64, local LMRTriplet, cookie uint64, at RMRTriplet, flags CompletionFlags) error {
	if err := ep.atomic(&local, &at); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags7
	}
	return ep.posted(ep.conn.PostCmpSwap(compare, swap, wire.Segment(local), cookie, at.remote(), wire.WorkFlags(flags)))
}

// atomic checks what the posts of atomics have in common.
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

// extend makes an event of the completion of an extended operation; others it leaves alone.
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
