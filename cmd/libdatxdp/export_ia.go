//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import (
	"log/slog"
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

// dxOpen opens an adapter. params is field 7 of a line of dat.conf. ia is the handle for the IA. The IA may use an
// existing EVD as its asynchronous EVD; async is then the id of that EVD. The IA may instead create a new asynchronous
// EVD; evd is then the handle for it. If async is 0 and evd is 0, the IA has no asynchronous EVD.
//
//export dxOpen
func dxOpen(params *C.char, qlen int32, async, ia, evd uint64) (r uint32) {
	defer catchPanic(&r)
	o := dat.Options{AsyncQLen: dat.NoAsyncEVD, Logger: slog.Default()}
	if evd != 0 {
		if qlen < 1 {
			return returnCode(dat.ErrInvalidParameter)
		}
		o.AsyncQLen = int(qlen)
	}
	if async != 0 {
		if o.AsyncEVD = get[*dat.EVD](async); o.AsyncEVD == nil {
			return returnCode(dat.ErrInvalidHandle)
		}
	}
	a, err := dat.Open(C.GoString(params), o)
	if r := connectHandle(ia, a, err); r != 0 || evd == 0 {
		return r
	}
	r = connectHandle(evd, a.AsyncEVD(), nil)
	if r != 0 {
		_ = a.Close() // the program has not got the handle yet
	}
	return r
}

//export dxCloseIA
func dxCloseIA(ia uint64, flags uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.IA](ia).CloseWith(dat.CloseFlags(min(flags, 1<<8-1))))
}

//export dxQueryIA
func dxQueryIA(ia, handle uint64, attr *C.DAT_IA_ATTR, provider *C.DAT_PROVIDER_ATTR, evd *uint64) (r uint32) {
	defer catchPanic(&r)
	p, err := get[*dat.IA](ia).Query()
	if err != nil {
		return returnCode(err)
	}
	if p.AsyncEVD != nil {
		*evd = handleOf(p.AsyncEVD)
	}
	more := C.dx_ia_more(C.uint64_t(handle))
	if more == nil {
		return returnCode(dat.ErrInsufficientResources)
	}
	t := texts{rest: more.text[:]}
	transport, vendor := t.attrs(more.transport[:], p.Transport), t.attrs(more.vendor[:], p.Vendor)
	specific := t.attrs(more.specific[:], p.Provider.Specific)
	if attr != nil {
		fillIA(attr, &p.IAAttr)
		attr.ia_address_ptr = setAddress(&more.address, p.Address)
		attr.num_transport_attr, attr.transport_attr = transport, &more.transport[0]
		attr.num_vendor_attr, attr.vendor_attr = vendor, &more.vendor[0]
	}
	if provider != nil {
		fillProvider(provider, &p.Provider)
		provider.num_provider_specific_attr, provider.provider_specific_attr = specific, &more.specific[0]
	}
	return 0
}

// texts allocates memory for strings, one after the other. Each call of dat_ia_query writes the same strings to the
// same places, so the results of earlier calls stay valid.
type texts struct{ rest []C.char }

// attrs writes as many attributes as fit, and returns their number.
func (t *texts) attrs(to []C.DAT_NAMED_ATTR, from []dat.NamedAttr) C.DAT_COUNT {
	for i, a := range from {
		if i == len(to) || len(a.Name)+len(a.Value)+2 > len(t.rest) {
			return C.DAT_COUNT(i)
		}
		to[i].name, to[i].value = t.put(a.Name), t.put(a.Value)
	}
	return C.DAT_COUNT(len(from))
}

func (t *texts) put(s string) *C.char {
	at := &t.rest[0]
	setText(t.rest[:len(s)+1], s)
	t.rest = t.rest[len(s)+1:]
	return at
}

func fillIA(to *C.DAT_IA_ATTR, a *dat.IAAttr) {
	setText(to.adapter_name[:], a.Name)
	setText(to.vendor_name[:], a.VendorName)
	to.hardware_version_major, to.hardware_version_minor = C.DAT_UINT32(a.HardwareMajor), C.DAT_UINT32(a.HardwareMinor)
	to.firmware_version_major, to.firmware_version_minor = C.DAT_UINT32(a.FirmwareMajor), C.DAT_UINT32(a.FirmwareMinor)
	to.max_eps = count(a.MaxEPs)
	to.max_dto_per_ep = count(a.MaxDTOPerEP)
	to.max_rdma_read_per_ep_in, to.max_rdma_read_per_ep_out = count(a.MaxRDMAReadPerEPIn), count(a.MaxRDMAReadPerEPOut)
	to.max_evds = count(a.MaxEVDs)
	to.max_evd_qlen = count(a.MaxEVDQLen)
	to.max_iov_segments_per_dto = count(a.MaxIOVPerDTO)
	to.max_lmrs = count(a.MaxLMRs)
	to.max_lmr_block_size = C.DAT_SEG_LENGTH(min(a.MaxLMRBlockSize, 1<<32-1))
	to.max_lmr_virtual_address = C.DAT_VADDR(a.MaxLMRVirtualAddress)
	to.max_pzs = count(a.MaxPZs)
	to.max_message_size, to.max_rdma_size = C.DAT_SEG_LENGTH(a.MaxMessageSize), C.DAT_SEG_LENGTH(a.MaxRDMASize)
	to.max_rmrs = count(a.MaxRMRs)
	to.max_rmr_target_address = C.DAT_VADDR(a.MaxRMRTargetAddress)
	to.max_srqs, to.max_ep_per_srq, to.max_recv_per_srq = count(a.MaxSRQs), count(a.MaxEPPerSRQ), count(a.MaxRecvPerSRQ)
	to.max_iov_segments_per_rdma_read = count(a.MaxIOVPerRDMARead)
	to.max_iov_segments_per_rdma_write = count(a.MaxIOVPerRDMAWrite)
	to.max_rdma_read_in, to.max_rdma_read_out = count(a.MaxRDMAReadIn), count(a.MaxRDMAReadOut)
	to.max_rdma_read_per_ep_in_guaranteed = truth(a.RDMAReadInGuarantee)
	to.max_rdma_read_per_ep_out_guaranteed = truth(a.RDMAReadOutGuarantee)
	to.zb_supported = truth(a.ZeroBased)
	to.extension_supported = C.DAT_EXTENSION(a.Extension)
	to.extension_version = count(a.ExtensionVersion)
}

func fillProvider(to *C.DAT_PROVIDER_ATTR, p *dat.ProviderAttr) {
	setText(to.provider_name[:], p.Name)
	to.provider_version_major, to.provider_version_minor = C.DAT_UINT32(p.Major), C.DAT_UINT32(p.Minor)
	to.lmr_mem_types_supported = C.DAT_MEM_TYPE(p.MemTypes)
	to.iov_ownership_on_return = C.DAT_IOV_OWNERSHIP(p.IOVOwnership)
	to.dat_qos_supported = C.DAT_QOS(p.QoS)
	to.completion_flags_supported = C.DAT_COMPLETION_FLAGS(p.CompletionFlags)
	to.max_private_data_size = count(p.MaxPrivateData)
	to.supports_multipath = truth(p.Multipath)
	to.ep_creator = C.DAT_EP_CREATOR_FOR_PSP(p.EPCreator)
	to.pz_support = C.DAT_PZ_SUPPORT(p.PZSupport)
	to.optimal_buffer_alignment = C.DAT_UINT32(p.BufferAlignment)
	merging := (*[dat.NumStreams][dat.NumStreams]C.DAT_BOOLEAN)(unsafe.Pointer(&to.evd_stream_merging_supported))
	for i, row := range p.StreamMerging {
		for j, may := range row {
			merging[i][j] = truth(may)
		}
	}
	to.srq_supported, to.srq_ep_pz_difference_supported = truth(p.SRQ), truth(p.SRQPZDifference)
	to.srq_watermarks_supported = C.DAT_COUNT(truth(p.SRQWatermarks))
	to.srq_info_supported, to.ep_recv_info_supported = C.DAT_COUNT(truth(p.SRQInfo)), C.DAT_COUNT(truth(p.EPRecvInfo))
	to.lmr_sync_req = truth(p.LMRSyncRequired)
	to.dto_async_return_guaranteed = truth(p.AsyncReturnGuaranteed)
	to.rdma_write_for_rdma_read_req = truth(p.RDMAReadNeedsRemoteWrite)
	to.rdma_read_lmr_rmr_context_exposure = truth(p.RDMAReadExposesContext)
	to.rmr_scope_supported = C.DAT_RMR_SCOPE(p.RMRScope)
	to.is_signal_safe = truth(p.SignalSafe)
	to.ha_supported = truth(p.HighAvailability)
}

// count converts a number to DAT_COUNT, limited to its largest value.
func count(n int) C.DAT_COUNT { return C.DAT_COUNT(min(n, 1<<31-1)) }
