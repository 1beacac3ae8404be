package dat

import (
	"net/netip"
	"strconv"
)

// Limits of an adapter, as counts of objects of all its opens. Connections and regions are bounded by
// the numbering of the protocol (docs/WIRE.md), the others by what anybody could want.
const (
	maxEPs  = 1<<18 - 1
	maxEVDs = 1 << 20
	maxPZs  = 1 << 16
	maxLMRs = 1<<20 - 2048
	maxRMRs = maxLMRs
	maxSRQs = 1 << 16
	// maxRegion bounds one region in bytes.
	maxRegion = 1 << 40
)

// Version of the API and of this provider.
const (
	apiMajor      = 2
	apiMinor      = 0
	providerMajor = 0
	providerMinor = 1
)

// NamedAttr is an attribute that only this provider or its transport has (DAT_NAMED_ATTR).
type NamedAttr struct{ Name, Value string }

// Extension says which extensions of DAT a provider has (DAT_EXTENSION).
type Extension uint8

// Extensions.
const (
	ExtensionNone Extension = 0
	ExtensionIB   Extension = 1
	ExtensionIW   Extension = 2
)

// extensionVersion is that of the IB extensions: 2.0.9.
const extensionVersion = 209

// IAParam is what IA.Query tells (the outputs of dat_ia_query).
type IAParam struct {
	IAAttr
	Provider ProviderAttr
	AsyncEVD *EVD // nil when the adapter was opened without one, or it is gone
}

// IAAttr describes an adapter (DAT_IA_ATTR). It is the same for all opens but for the name. The
// limits of counts are those of all opens together; a call that would go beyond one returns
// ErrInsufficientResources, or ErrInvalidParameter for a limit of a size.
type IAAttr struct {
	Name                         string // as it was opened
	VendorName                   string
	HardwareMajor, HardwareMinor uint32
	FirmwareMajor, FirmwareMinor uint32

	Address   netip.Addr // what peers connect to
	Port      uint16     // UDP port that it receives on
	Mode      string     // how packets move, as granted: zero-copy, copy, generic, udp, or the word of a link of OpenLink
	Queues    int
	MaxPacket int // bytes of UDP payload

	MaxEPs               int    // endpoints in all states
	MaxDTOPerEP          int    // outstanding operations of each direction
	MaxRDMAReadPerEPIn   int    // RDMA reads served at one time
	MaxRDMAReadPerEPOut  int    // RDMA reads outstanding at one time
	MaxEVDs              int    // event dispatchers, asynchronous ones not counted
	MaxEVDQLen           int    // events in one
	MaxIOVPerDTO         int    // segments of a send or receive
	MaxLMRs              int    // local memory regions
	MaxLMRBlockSize      uint64 // bytes of one
	MaxLMRVirtualAddress uint64
	MaxPZs               int    // protection zones
	MaxMessageSize       uint32 // bytes
	MaxRDMASize          uint32 // bytes
	MaxRMRs              int    // remote memory regions
	MaxRMRTargetAddress  uint64
	MaxSRQs              int // shared receive queues
	MaxEPPerSRQ          int
	MaxRecvPerSRQ        int
	MaxIOVPerRDMARead    int
	MaxIOVPerRDMAWrite   int
	MaxRDMAReadIn        int  // of all endpoints
	MaxRDMAReadOut       int  // of all endpoints
	RDMAReadInGuarantee  bool // MaxRDMAReadPerEPIn is reserved for each endpoint
	RDMAReadOutGuarantee bool // MaxRDMAReadPerEPOut is reserved for each endpoint
	ZeroBased            bool // regions may be addressed from zero on

	Extension        Extension
	ExtensionVersion int
	Transport        []NamedAttr
	Vendor           []NamedAttr
}

// MemType is how memory is named when it is registered (DAT_MEM_TYPE).
type MemType uint8

// Kinds of memory.
const (
	MemVirtual       MemType = 0 // CreateLMR
	MemLMR           MemType = 1 // CreateLMRFromLMR
	MemSharedVirtual MemType = 2 // CreateLMRShared
)

// IOVOwnership says until when a post needs the slice of segments (DAT_IOV_OWNERSHIP).
type IOVOwnership uint8

// Owners of the segments after a post.
const (
	IOVConsumer      IOVOwnership = 0 // the slice is free when the post returns
	IOVProviderNoMod IOVOwnership = 1
	IOVProviderMod   IOVOwnership = 2
)

// EPCreator says when the provider makes endpoints for a service point (DAT_EP_CREATOR_FOR_PSP).
type EPCreator uint8

// When the provider makes endpoints.
const (
	EPCreatorNever   EPCreator = 0
	EPCreatorIfAsked EPCreator = 1
	EPCreatorAlways  EPCreator = 2
)

// PZSupport says whether zones are of one open adapter (DAT_PZ_SUPPORT).
type PZSupport uint8

// Kinds of protection zones.
const (
	PZUnique    PZSupport = 0
	PZShareable PZSupport = 1
)

// RMRScope says through which endpoints a remote memory region can be used (DAT_RMR_SCOPE).
type RMRScope uint8

// Scopes of remote memory regions.
const (
	RMRScopeEP  RMRScope = 0 // the one that it was bound on
	RMRScopePZ  RMRScope = 1 // all of its protection zone
	RMRScopeAny RMRScope = 2 // either: ProviderAttr.RMRScope
)

// Streams of events, as indices of ProviderAttr.StreamMerging.
const (
	StreamSoftware = iota
	StreamCR
	StreamDTO
	StreamConnection
	StreamRMRBind
	StreamAsync
	NumStreams
)

// ProviderAttr describes the provider (DAT_PROVIDER_ATTR).
type ProviderAttr struct {
	Name                 string
	Major, Minor         uint32                       // version of the provider
	DAPLMajor, DAPLMinor uint32                       // version of the API
	MemTypes             MemType                      // the union of those that can be registered
	IOVOwnership         IOVOwnership                 // of the segments of posts
	QoS                  QoS                          // the union of those to be had
	CompletionFlags      CompletionFlags              // the union of those to be had
	ThreadSafe           bool                         // every call may be made by any goroutine
	MaxPrivateData       int                          // bytes
	Multipath            bool                         // connections over several paths
	EPCreator            EPCreator                    // for service points
	PZSupport            PZSupport                    //
	BufferAlignment      int                          // bytes; what lies on it moves fastest
	StreamMerging        [NumStreams][NumStreams]bool // streams that may share an event dispatcher

	SRQ             bool // shared receive queues
	SRQWatermarks   bool
	SRQPZDifference bool // endpoints of another zone than their shared receive queue
	SRQInfo         bool // SRQ.Query counts what is available and outstanding
	EPRecvInfo      bool // EP.RecvQuery counts

	LMRSyncRequired          bool // IA.SyncRDMARead and SyncRDMAWrite are needed for coherence
	AsyncReturnGuaranteed    bool // posts do not block
	RDMAReadNeedsRemoteWrite bool // the local memory of an RDMA read
	RDMAReadExposesContext   bool // the local memory of an RDMA read is named to the peer
	RMRScope                 RMRScope
	SignalSafe               bool
	HighAvailability         bool

	Specific []NamedAttr
}

// adapterAttr are the attributes of an adapter without the name of an open.
func (a *adapter) adapterAttr() IAAttr {
	caps := a.drivers[0].link.Caps()
	return IAAttr{VendorName: "datxdp", Address: a.address(), Port: a.port, Mode: caps.Mode, Queues: len(a.drivers),
		MaxPacket: caps.MaxPayload, MaxEPs: maxEPs, MaxDTOPerEP: maxDTOs, MaxRDMAReadPerEPIn: maxReads,
		MaxRDMAReadPerEPOut: maxReads, MaxEVDs: maxEVDs, MaxEVDQLen: maxEVDQLen, MaxIOVPerDTO: maxIOV,
		MaxLMRs: maxLMRs, MaxLMRBlockSize: maxRegion, MaxLMRVirtualAddress: 1<<64 - 1, MaxPZs: maxPZs,
		MaxMessageSize: maxSize, MaxRDMASize: maxSize, MaxRMRs: maxRMRs, MaxRMRTargetAddress: 1<<64 - 1,
		MaxSRQs: maxSRQs, MaxEPPerSRQ: maxEPs, MaxRecvPerSRQ: maxSRQDTOs, MaxIOVPerRDMARead: maxIOV,
		MaxIOVPerRDMAWrite: maxIOV, MaxRDMAReadIn: maxEPs * maxReads, MaxRDMAReadOut: maxEPs * maxReads,
		RDMAReadInGuarantee: true, RDMAReadOutGuarantee: true, Extension: ExtensionIB, ExtensionVersion: extensionVersion}
}

// providerAttr are the attributes of this provider over links with packets of some bytes.
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

// most is how many objects of a kind the adapter has at one time.
func (a *IAAttr) most(t HandleType) int {
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

// resources are the subtypes of ErrInsufficientResources for each kind of object.
var resources = [...]Subtype{HandleEP: SubResourceTEP, HandleEVD: SubResourceTEVD, HandlePZ: SubResourceProtectionDomain,
	HandleLMR: SubResourceMemoryRegion, HandleRMR: SubResourceMemoryRegion, HandleSRQ: SubResourceSRQ}

// admit counts one more object of a kind, unless that is more than the adapter has.
func (a *adapter) admit(t HandleType) error {
	if most := a.attr.most(t); int(a.count[t].Add(1)) > most {
		a.count[t].Add(-1)
		return fail(with(ErrInsufficientResources, resources[t]), "the adapter has %d of %v and all are in use", most, t)
	}
	return nil
}

// dismiss counts n objects of a kind less.
func (a *adapter) dismiss(t HandleType, n int) { a.count[t].Add(-int32(n)) }
