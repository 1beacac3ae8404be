//go:build cgo && datprovider

/* Data transfer operations. The arguments of extended operations are in a va_list. */

#include "entry.h"

DAT_RETURN dx_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	DAT_COMPLETION_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED_IOV();
	return dxPostSend(id(ep), n, iov, cookie.as_64, flags);
}

DAT_RETURN dx_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED_IOV();
	if (!invalidate)
		return dxPostSend(id(ep), n, iov, cookie.as_64, flags);
	return dxPostSendInvalidate(id(ep), n, iov, cookie.as_64, flags, context);
}

DAT_RETURN dx_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	DAT_COMPLETION_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED_IOV();
	return dxPostRecv(id(ep), n, iov, cookie.as_64, flags);
}

DAT_RETURN dx_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED_IOV();
	NEED(remote, 5);
	return dxPostRead(id(ep), n, iov, cookie.as_64, remote->virtual_address, remote->segment_length,
		remote->rmr_context, flags);
}

DAT_RETURN dx_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
	const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED(local, 2);
	NEED(remote, 4);
	return dxPostReadToRMR(id(ep), (DAT_RMR_TRIPLET *)local, cookie.as_64, (DAT_RMR_TRIPLET *)remote, flags);
}

DAT_RETURN dx_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED_IOV();
	NEED(remote, 5);
	return dxPostWrite(id(ep), n, iov, cookie.as_64, remote->virtual_address, remote->segment_length,
		remote->rmr_context, flags);
}

static DAT_RETURN write_immed(DAT_EP_HANDLE ep, va_list args)
{
	DAT_COUNT n = va_arg(args, DAT_COUNT);
	DAT_LMR_TRIPLET *iov = va_arg(args, DAT_LMR_TRIPLET *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);
	const DAT_RMR_TRIPLET *remote = va_arg(args, DAT_RMR_TRIPLET *);
	DAT_UINT32 immediate = va_arg(args, DAT_UINT32);
	DAT_COMPLETION_FLAGS flags = va_arg(args, DAT_COMPLETION_FLAGS);

	NEED_IOV();
	NEED(remote, 5);
	return dxPostWriteImm(id(ep), n, iov, cookie.as_64, (DAT_RMR_TRIPLET *)remote, immediate, flags);
}

static DAT_RETURN atomic(DAT_EP_HANDLE ep, int swap, va_list args)
{
	DAT_UINT64 first = va_arg(args, DAT_UINT64);
	DAT_UINT64 second = swap ? va_arg(args, DAT_UINT64) : 0;
	DAT_LMR_TRIPLET *local = va_arg(args, DAT_LMR_TRIPLET *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);
	DAT_RMR_TRIPLET *remote = va_arg(args, DAT_RMR_TRIPLET *);
	DAT_COMPLETION_FLAGS flags = va_arg(args, DAT_COMPLETION_FLAGS);

	NEED(local, 4);
	NEED(remote, 6);
	if (swap)
		return dxPostCmpSwap(id(ep), first, second, local, cookie.as_64, remote, flags);
	return dxPostFetchAdd(id(ep), first, local, cookie.as_64, remote, flags);
}

DAT_RETURN dx_handle_extendedop(DAT_HANDLE h, DAT_EXTENDED_OP op, va_list args)
{
	ENTRY();
	switch ((int)op) {
	case DAT_IB_RDMA_WRITE_IMMED_OP:
		LIVE(h, EP, EP);
		return write_immed(h, args);
	case DAT_IB_FETCH_AND_ADD_OP:
	case DAT_IB_CMP_AND_SWAP_OP:
		LIVE(h, EP, EP);
		return atomic(h, op == DAT_IB_CMP_AND_SWAP_OP, args);
	case DAT_IB_OPEN_QUERY_OP:
		return dx_open_query(h, args);
	case DAT_IB_CLOSE_QUERY_OP:
		return dx_ia_close(h, DAT_CLOSE_ABRUPT_FLAG);
	default:
		return ERROR(DAT_NOT_IMPLEMENTED, 0, "this provider does not have the operation: see docs/DAT.md");
	}
}
