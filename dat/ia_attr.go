package dat

import (
	"net/netip"
	"strconv"
)

// Maximum numbers of objects of an adapter. They apply to all opens of the adapter together. The maximum of regions
// follows from the size of their keys in the wire protocol (docs/WIRE.md). The other maxima are larger than programs
// need.
const (
	maxEPs  = 1<<18 - 1
	maxEVDs = 1 << 20
	maxPZs  = 1 << 20 // more than endpoints: package stream gives each stream a zone, and one address may have 65536 streams
	maxLMRs = 1<<20 - 2048
	maxRMRs = maxLMRs
	maxSRQs = 1 << 16
	// maxRegion is the maximum size of one region in bytes.
	maxRegion = 1 << 40
)

const _ = uint(maxPZs - maxEPs) // does not compile if there are fewer zones than endpoints

// Version of the API and of this provider.
const (
	apiMajor      = 2
	apiMinor      = 0
	providerMajor = 0
	providerMinor = 1
)

// NamedAttr is an attribute that is specific to this provider or to its transport (DAT_NAMED_ATTR).
type NamedAttr struct{ Name, Value string }

// Extension is a set of extensions of the API that a provider implements (DAT_EXTENSION).
type Extension uint8

// Extensions.
const (
	ExtensionNone Extension = 0
	ExtensionIB   Extension = 1
	ExtensionIW   Extension = 2
)

// extensionVersion is the version of the IB extensions: 2.0.9.
const extensionVersion = 209

// IAParam is the result of IA.Query (the outputs of dat_ia_query).
type IAParam struct {
	IAAttr
	Provider ProviderAttr
	AsyncEVD *EVD // nil if the IA was opened with NoAsyncEVD, or the asynchronous EVD was freed
}

// IAAttr has the attributes of an adapter (DAT_IA_ATTR). All opens of an adapter have the same attributes, except
// Name. There are two kinds of limits:
//
//   - Maximum numbers of objects apply to all opens together. A call that would exceed such a maximum returns
//     ErrInsufficientResources.
//   - Maximum sizes apply to one object or operation. A call that would exceed such a maximum returns
//     ErrInvalidParameter.
type IAAttr struct {
	Name                         string // the name passed to Open
	VendorName                   string
	HardwareMajor, HardwareMinor uint32
	FirmwareMajor, FirmwareMinor uint32

	Address netip.Addr // the address that peers connect to
	Port    uint16     // UDP port that the adapter receives on
	// PortPicked is true if the system has picked Port, because another process has DefaultPort. Peers have to be told
	// such a port.
	PortPicked bool
	Mode       string // granted mode: zero-copy, copy, generic or udp; after OpenLink the mode of the caller's links
	Offload    string // offloads of the kernel in use, separated by a space: UDP_SEGMENT, UDP_GRO; "" if none
	Secure     bool   // secure mode: connections are authenticated and encrypted
	Queues     int    // receive queues in use
	MaxPacket  int    // UDP payload, in bytes

	MaxEPs               int    // endpoints in all states
	MaxDTOPerEP          int    // outstanding receives of one endpoint, and also its outstanding requests
	MaxRDMAReadPerEPIn   int    // RDMA reads of the peer that one endpoint serves at the same time
	MaxRDMAReadPerEPOut  int    // outstanding RDMA reads of one endpoint
	MaxEVDs              int    // event dispatchers, without the asynchronous EVDs that Open creates
	MaxEVDQLen           int    // queue length of one event dispatcher, in events
	MaxIOVPerDTO         int    // segments of one send or receive
	MaxLMRs              int    // local memory regions
	MaxLMRBlockSize      uint64 // size of one local memory region, in bytes
	MaxLMRVirtualAddress uint64 // highest address of a local memory region
	MaxPZs               int    // protection zones
	MaxMessageSize       uint32 // size of one send, in bytes
	MaxRDMASize          uint32 // size of one RDMA operation, in bytes
	MaxRMRs              int    // remote memory regions
	MaxRMRTargetAddress  uint64 // highest address of a remote memory region
	MaxSRQs              int    // shared receive queues
	MaxEPPerSRQ          int    // endpoints of one shared receive queue
	MaxRecvPerSRQ        int    // outstanding receives of one shared receive queue
	MaxIOVPerRDMARead    int    // segments of one RDMA read
	MaxIOVPerRDMAWrite   int    // segments of one RDMA write
	MaxRDMAReadIn        int    // RDMA reads of peers that all endpoints together serve at the same time
	MaxRDMAReadOut       int    // outstanding RDMA reads of all endpoints together
	RDMAReadInGuarantee  bool   // MaxRDMAReadPerEPIn is reserved for each endpoint
	RDMAReadOutGuarantee bool   // MaxRDMAReadPerEPOut is reserved for each endpoint
	ZeroBased            bool   // a region may use offsets from 0 in place of virtual addresses

	Extension        Extension
	ExtensionVersion int
	Transport        []NamedAttr
	Vendor           []NamedAttr
}

// MemType is the kind of memory of an LMR (DAT_MEM_TYPE).
type MemType uint8

// Kinds of memory.
const (
	MemVirtual       MemType = 0 // memory of this process: CreateLMR
	MemLMR           MemType = 1 // the memory of another LMR: CreateLMRFromLMR
	MemSharedVirtual MemType = 2 // memory shared by processes: CreateLMRShared
)

// IOVOwnership says who owns the slice of segments after a post (DAT_IOV_OWNERSHIP).
type IOVOwnership uint8

// Owners of the slice of segments after a post.
const (
	IOVConsumer      IOVOwnership = 0 // the consumer owns the slice
	IOVProviderNoMod IOVOwnership = 1 // the provider owns the slice until the completion, and does not change it
	IOVProviderMod   IOVOwnership = 2 // the provider owns the slice until the completion, and may change it
)

// EPCreator says when the provider creates the endpoints of a service point (DAT_EP_CREATOR_FOR_PSP).
type EPCreator uint8

// Values of EPCreator.
const (
	EPCreatorNever   EPCreator = 0
	EPCreatorIfAsked EPCreator = 1 // for a service point created with PSPProvider
	EPCreatorAlways  EPCreator = 2
)

// PZSupport says whether several opens of an adapter can share a protection zone (DAT_PZ_SUPPORT).
type PZSupport uint8

// Kinds of protection zones.
const (
	PZUnique    PZSupport = 0 // a zone belongs to one open of the adapter
	PZShareable PZSupport = 1 // several opens of the adapter can share a zone
)

// RMRScope says which endpoints may use a remote memory region (DAT_RMR_SCOPE).
type RMRScope uint8

// Scopes of remote memory regions.
const (
	RMRScopeEP  RMRScope = 0 // only the endpoint that the region was bound on
	RMRScopePZ  RMRScope = 1 // every endpoint of the region's protection zone
	RMRScopeAny RMRScope = 2 // only in ProviderAttr.RMRScope: the provider supports both scopes
)

// Event streams: the indices of ProviderAttr.StreamMerging.
const (
	StreamSoftware = iota
	StreamCR
	StreamDTO
	StreamConnection
	StreamRMRBind
	StreamAsync
	NumStreams
)

// ProviderAttr has the attributes of the provider (DAT_PROVIDER_ATTR).
type ProviderAttr struct {
	Name                 string
	Major, Minor         uint32                       // version of the provider
	DAPLMajor, DAPLMinor uint32                       // version of the API
	MemTypes             MemType                      // supported kinds of memory, combined with OR
	IOVOwnership         IOVOwnership                 // ownership of the segments of a post
	QoS                  QoS                          // supported qualities of service, combined with OR
	CompletionFlags      CompletionFlags              // supported completion flags, combined with OR
	ThreadSafe           bool                         // any goroutine may make any call
	MaxPrivateData       int                          // size of private data, in bytes
	Multipath            bool                         // a connection may use several paths
	EPCreator            EPCreator                    // when the provider creates endpoints for service points
	PZSupport            PZSupport                    // whether several opens can share a protection zone
	BufferAlignment      int                          // alignment of buffers, in bytes, at which copies are fastest
	StreamMerging        [NumStreams][NumStreams]bool // which pairs of streams may share an event dispatcher

	SRQ             bool // shared receive queues
	SRQWatermarks   bool // watermarks of shared receive queues
	SRQPZDifference bool // an endpoint may be in another zone than its shared receive queue
	SRQInfo         bool // SRQ.Query returns Available and Outstanding
	EPRecvInfo      bool // EP.RecvQuery is supported

	LMRSyncRequired          bool     // programs need SyncRDMARead and SyncRDMAWrite, because memory is not coherent
	AsyncReturnGuaranteed    bool     // posts never block
	RDMAReadNeedsRemoteWrite bool     // the local memory of an RDMA read needs MemRemoteWrite
	RDMAReadExposesContext   bool     // an RDMA read tells the peer the context of the local memory
	RMRScope                 RMRScope // supported scopes of remote memory regions
	SignalSafe               bool     // calls are legal in a signal handler
	HighAvailability         bool     // a connection can move to another path or device

	Specific []NamedAttr
}

// adapterAttr returns the attributes of the adapter. Name is empty, because it differs between opens.
func (a *adapter) adapterAttr() IAAttr {
	caps := a.drivers[0].link.Caps()
	return IAAttr{VendorName: "datxdp", Address: a.address(), Port: a.port, Mode: caps.Mode, Offload: caps.Offload, Secure: a.security != nil, Queues: len(a.drivers),
		MaxPacket: caps.MaxPayload, MaxEPs: maxEPs, MaxDTOPerEP: maxDTOs, MaxRDMAReadPerEPIn: maxReads,
		MaxRDMAReadPerEPOut: maxReads, MaxEVDs: maxEVDs, MaxEVDQLen: maxEVDQLen, MaxIOVPerDTO: maxIOV,
		MaxLMRs: maxLMRs, MaxLMRBlockSize: maxRegion, MaxLMRVirtualAddress: 1<<64 - 1, MaxPZs: maxPZs,
		MaxMessageSize: maxSize, MaxRDMASize: maxSize, MaxRMRs: maxRMRs, MaxRMRTargetAddress: 1<<64 - 1,
		MaxSRQs: maxSRQs, MaxEPPerSRQ: maxEPs, MaxRecvPerSRQ: maxSRQDTOs, MaxIOVPerRDMARead: maxIOV,
		MaxIOVPerRDMAWrite: maxIOV, MaxRDMAReadIn: maxEPs * maxReads, MaxRDMAReadOut: maxEPs * maxReads,
		RDMAReadInGuarantee: true, RDMAReadOutGuarantee: true, Extension: ExtensionIB, ExtensionVersion: extensionVersion}
}

// providerAttr returns the attributes of this provider. maxPacket is the largest UDP payload of the links, in bytes.
func providerAttr(maxPacket int) ProviderAttr {
	p := ProviderAttr{Name: "datxdp", Major: providerMajor, Minor: providerMinor, DAPLMajor: apiMajor, DAPLMinor: apiMinor,
		MemTypes: MemVirtual | MemLMR | MemSharedVirtual, IOVOwnership: IOVConsumer, QoS: QoSBestEffort,
		CompletionFlags: 0x1f, ThreadSafe: true, MaxPrivateData: maxPrivateData, EPCreator: EPCreatorIfAsked,
		PZSupport: PZUnique, BufferAlignment: 64, SRQ: true, SRQWatermarks: true, SRQPZDifference: true, SRQInfo: true,
		EPRecvInfo: true, AsyncReturnGuaranteed: true, RMRScope: RMRScopeAny,
		Specific: []NamedAttr{{"DAT_IB_TRANSPORT_MTU", strconv.Itoa(maxPacket)}, {"DAT_EXTENSION_INTERFACE", "TRUE"},
			{"DAT_IB_FETCH_AND_ADD", "TRUE"}, {"DAT_IB_CMP_AND_SWAP", "TRUE"}, {"DAT_IB_IMMED_DATA", "TRUE"}}}
	for i := range p.StreamMerging {
		for j := range p.StreamMerging[i] {
			p.StreamMerging[i][j] = true
		}
	}
	return p
}

// limit returns the maximum number of objects of kind t.
func (a *IAAttr) limit(t HandleType) int {
	switch t {
	case HandleEP:
		return a.MaxEPs
	case HandleEVD:
		return a.MaxEVDs
	case HandleLMR:
		return a.MaxLMRs
	case HandlePZ:
		return a.MaxPZs
	case HandleRMR:
		return a.MaxRMRs
	case HandleSRQ:
		return a.MaxSRQs
	default:
		return maxSize
	}
}

// resources has the subtype of ErrInsufficientResources for each kind of object.
var resources = [...]Subtype{HandleEP: SubResourceTEP, HandleEVD: SubResourceTEVD, HandlePZ: SubResourceProtectionDomain,
	HandleLMR: SubResourceMemoryRegion, HandleRMR: SubResourceMemoryRegion, HandleSRQ: SubResourceSRQ}

// addObject counts one more object of kind t. It returns ErrInsufficientResources if the adapter has the maximum number
// of such objects already.
func (a *adapter) addObject(t HandleType) error {
	if limit := a.attr.limit(t); int(a.objectCounts[t].Add(1)) > limit {
		a.objectCounts[t].Add(-1)
		return fail(with(ErrInsufficientResources, resources[t]), "the adapter has the maximum number of %v objects, %d", t, limit)
	}
	return nil
}

// removeObjects subtracts n objects of kind t from the count.
func (a *adapter) removeObjects(t HandleType, n int) { a.objectCounts[t].Add(-int32(n)) }
