package dat

// ConnQual is a connection qualifier: the number of a service of an adapter (DAT_CONN_QUAL).
type ConnQual uint64

// CloseFlags choose between an abrupt and a graceful close or disconnect (DAT_CLOSE_FLAGS).
type CloseFlags uint8

// Close flags.
const (
	CloseAbrupt   CloseFlags = 0
	CloseGraceful CloseFlags = 1
)

// QoS is a quality of service (DAT_QOS).
type QoS uint8

// Qualities of service.
const (
	QoSBestEffort     QoS = 0x00
	QoSHighThroughput QoS = 0x01
	QoSLowLatency     QoS = 0x02
	QoSEconomy        QoS = 0x04 // low cost: neither throughput nor latency
	QoSPremium        QoS = 0x08 // high throughput and low latency
)

// CompletionFlags are the flags of a post. As an attribute of an endpoint they say which of its completions are
// notifications (DAT_COMPLETION_FLAGS).
type CompletionFlags uint8

// Completion flags.
const (
	CompletionDefault       CompletionFlags = 0
	CompletionSuppress      CompletionFlags = 0x01 // the request makes no completion if it succeeds
	CompletionSolicitedWait CompletionFlags = 0x02 // the peer's receive is a notification; for sends and writes with immediate data
	CompletionUnsignalled   CompletionFlags = 0x04 // the completion is not a notification
	CompletionBarrierFence  CompletionFlags = 0x08 // the request starts after all earlier RDMA reads and atomics have completed

	// CompletionEVDThreshold is an attribute of endpoints, not a flag of posts: every completion counts toward the
	// threshold of EVD.Wait.
	CompletionEVDThreshold CompletionFlags = 0x10
)

// EVDFlags are the event streams that an EVD accepts (DAT_EVD_FLAGS).
type EVDFlags uint16

// Event streams.
const (
	EVDSoftware   EVDFlags = 0x001
	EVDCR         EVDFlags = 0x010
	EVDDTO        EVDFlags = 0x020
	EVDConnection EVDFlags = 0x040
	EVDRMRBind    EVDFlags = 0x080
	EVDAsync      EVDFlags = 0x100
	evdAll                 = EVDSoftware | EVDCR | EVDDTO | EVDConnection | EVDRMRBind | EVDAsync
	evdSlow                = EVDSoftware | EVDCR | EVDAsync // streams whose events do not pass through an engine's queue
)

// PSPFlags say whether the consumer or the provider creates the endpoints of a service point (DAT_PSP_FLAGS).
type PSPFlags uint8

// Service point flags.
const (
	PSPConsumer PSPFlags = 0
	PSPProvider PSPFlags = 1
)

// MemPriv are the privileges of a memory region (DAT_MEM_PRIV_FLAGS).
type MemPriv uint8

// Memory privileges.
const (
	MemNone        MemPriv = 0
	MemLocalRead   MemPriv = 0x01
	MemRemoteRead  MemPriv = 0x02
	MemLocalWrite  MemPriv = 0x10
	MemRemoteWrite MemPriv = 0x20
	MemAll         MemPriv = MemLocalRead | MemRemoteRead | MemLocalWrite | MemRemoteWrite
)

// EPState is the state of an endpoint (DAT_EP_STATE).
type EPState uint8

// Endpoint states; the values are those of DAT_EP_STATE.
const (
	EPUnconnected                EPState = 0
	EPReserved                   EPState = 2 // belongs to a reserved service point that listens
	EPPassiveConnectionPending   EPState = 4 // belongs to a connection request that is not answered yet
	EPActiveConnectionPending    EPState = 6 // Connect was called; the peer has not answered yet
	EPTentativeConnectionPending EPState = 7 // created by the provider for a request that is not answered yet
	EPConnected                  EPState = 9
	EPDisconnectPending          EPState = 10 // graceful disconnect, outstanding requests are finishing
	EPDisconnected               EPState = 11
	EPCompletionPending          EPState = 12 // accepted; the peer has not confirmed yet
)

var epStateNames = map[EPState]string{
	EPUnconnected: "UNCONNECTED", EPReserved: "RESERVED",
	EPPassiveConnectionPending: "PASSIVE_CONNECTION_PENDING", EPActiveConnectionPending: "ACTIVE_CONNECTION_PENDING",
	EPTentativeConnectionPending: "TENTATIVE_CONNECTION_PENDING",
	EPConnected:                  "CONNECTED", EPDisconnectPending: "DISCONNECT_PENDING",
	EPDisconnected: "DISCONNECTED", EPCompletionPending: "COMPLETION_PENDING",
}

// String returns the DAT name without its prefix.
func (s EPState) String() string { return enumName(epStateNames[s], "DAT_EP_STATE", s) }

// LMRTriplet is a range of registered local memory (DAT_LMR_TRIPLET, with the same layout in memory). LMR.Segment
// makes one. A post copies its triplets, so the caller may reuse the slice.
type LMRTriplet struct {
	Address uint64
	Length  uint32 // bytes; a triplet of length 0 is ignored
	Context uint32 // LMR.Context
}

// RMRTriplet is a range of the peer's memory (DAT_RMR_TRIPLET). The program at the peer sends it to this side, for
// example in a message.
type RMRTriplet struct {
	Context uint32
	Address uint64
	Length  uint64 // bytes
}

// ServiceType is a kind of connection (DAT_SERVICE_TYPE).
type ServiceType uint8

// ServiceRC is the reliable connection, the only supported kind.
const ServiceRC ServiceType = 0

// ConnectFlags are the flags of ConnectConfig (DAT_CONNECT_FLAGS).
type ConnectFlags uint8

// Connect flags. A connection uses one path: ConnectMultipathRequested has no effect, and ConnectMultipathRequired is
// refused.
const (
	ConnectDefault            ConnectFlags = 0
	ConnectMultipathRequested ConnectFlags = 0x01
	ConnectMultipathRequired  ConnectFlags = 0x02
	connectAll                             = ConnectMultipathRequested | ConnectMultipathRequired
)

// EPAttr are the attributes of an endpoint (DAT_EP_ATTR). EP.Query returns the granted values.
//
// The two sizes are minimums. An endpoint without a shared receive queue gets 2^31-1 bytes, since a larger limit
// costs nothing. An endpoint with a shared receive queue gets exactly the sizes in its attributes, as
// dat_ep_create_with_srq requires. The other values are granted exactly as given. Zero in a size or in a limit on
// segments (IOV) means the default.
type EPAttr struct {
	ServiceType                   ServiceType
	QoS                           QoS
	MaxMessageSize, MaxRDMASize   uint32 // bytes of one operation; 0 means 2^31-1
	MaxRecvDTOs, MaxRequestDTOs   int    // outstanding receives and requests
	MaxRecvIOV, MaxRequestIOV     int    // segments of one operation; 0 means 4
	MaxRDMAReadIn, MaxRDMAReadOut int    // RDMA reads of the peer served at a time; own RDMA reads outstanding
	MaxRDMAReadIOV                int    // segments of one RDMA read; 0 means MaxRequestIOV
	MaxRDMAWriteIOV               int    // segments of one RDMA write; 0 means MaxRequestIOV
	SRQSoftHW                     int    // soft high watermark with a shared receive queue; 0 or WatermarkInfinite means none

	// RecvCompletionFlags say which completions of receives are notifications:
	//
	//   - CompletionEVDThreshold, CompletionDefault: all.
	//   - CompletionUnsignalled: all but those of receives posted with CompletionUnsignalled. PostRecv accepts that flag
	//     only in this case.
	//   - CompletionSolicitedWait: those of messages that the peer posted with CompletionSolicitedWait.
	//
	// A failure is always a notification. All streams that feed a dispatcher must have the same kind of flags.
	RecvCompletionFlags CompletionFlags
	// RequestCompletionFlags say the same for requests. CompletionSolicitedWait is not legal here.
	RequestCompletionFlags CompletionFlags
}

// DefaultEPAttr returns the attributes of an endpoint whose EPConfig.Attr is nil.
func DefaultEPAttr() EPAttr {
	return EPAttr{MaxMessageSize: maxSize, MaxRDMASize: maxSize, MaxRecvDTOs: 256, MaxRequestDTOs: 256,
		MaxRecvIOV: 4, MaxRequestIOV: 4, MaxRDMAReadIn: 4, MaxRDMAReadOut: 4,
		MaxRDMAReadIOV: 4, MaxRDMAWriteIOV: 4,
		RecvCompletionFlags: CompletionEVDThreshold, RequestCompletionFlags: CompletionEVDThreshold}
}

// Limits of the provider.
const (
	maxDTOs        = 16384
	maxIOV         = 16
	maxReads       = 128
	maxSize        = 1<<31 - 1 // bytes of one operation
	maxEVDQLen     = 1 << 20
	maxPrivateData = 256
)

// grant raises the sizes of an endpoint without a shared receive queue to the maximum. The attributes are valid.
func (p *EPParam) grant() {
	if p.SRQ == nil {
		p.Attr.MaxMessageSize, p.Attr.MaxRDMASize = maxSize, maxSize
	}
}

// setDefaults replaces zero in sizes and in limits on segments by the default.
func (a *EPAttr) setDefaults() {
	d := DefaultEPAttr()
	if a.MaxMessageSize == 0 {
		a.MaxMessageSize = d.MaxMessageSize
	}
	if a.MaxRDMASize == 0 {
		a.MaxRDMASize = d.MaxRDMASize
	}
	if a.MaxRecvIOV == 0 {
		a.MaxRecvIOV = d.MaxRecvIOV
	}
	if a.MaxRequestIOV == 0 {
		a.MaxRequestIOV = d.MaxRequestIOV
	}
	if a.MaxRDMAReadIOV == 0 {
		a.MaxRDMAReadIOV = a.MaxRequestIOV
	}
	if a.MaxRDMAWriteIOV == 0 {
		a.MaxRDMAWriteIOV = a.MaxRequestIOV
	}
}

// validate checks the attributes after setDefaults.
func (a *EPAttr) validate() error {
	if a.ServiceType != ServiceRC || a.QoS != QoSBestEffort {
		return fail(ErrModelNotSupported, "service type %d, quality of service %#x: use ServiceRC, QoSBestEffort", a.ServiceType, uint8(a.QoS))
	}
	for _, f := range []struct {
		name     string
		v, limit int
	}{
		{"MaxRecvDTOs", a.MaxRecvDTOs, maxDTOs}, {"MaxRequestDTOs", a.MaxRequestDTOs, maxDTOs},
		{"MaxRecvIOV", a.MaxRecvIOV, maxIOV}, {"MaxRequestIOV", a.MaxRequestIOV, maxIOV},
		{"MaxRDMAReadIn", a.MaxRDMAReadIn, maxReads}, {"MaxRDMAReadOut", a.MaxRDMAReadOut, maxReads},
		{"MaxRDMAReadIOV", a.MaxRDMAReadIOV, maxIOV}, {"MaxRDMAWriteIOV", a.MaxRDMAWriteIOV, maxIOV},
		{"MaxMessageSize", int(a.MaxMessageSize), maxSize}, {"MaxRDMASize", int(a.MaxRDMASize), maxSize},
	} {
		if f.v < 0 || f.v > f.limit {
			return fail(ErrInvalidParameter, "%s is %d; it may be 0 to %d", f.name, f.v, f.limit)
		}
	}
	if a.SRQSoftHW < WatermarkInfinite {
		return fail(ErrInvalidParameter, "SRQSoftHW is %d; use 0 or more, or WatermarkInfinite", a.SRQSoftHW)
	}
	return a.validateCompletion()
}

// validateCompletion checks the completion flags.
func (a *EPAttr) validateCompletion() error {
	switch a.RecvCompletionFlags {
	case CompletionDefault, CompletionUnsignalled, CompletionSolicitedWait, CompletionEVDThreshold:
	default:
		return fail(ErrInvalidParameter, "RecvCompletionFlags %#x; use default, unsignalled, solicited wait or EVD threshold", uint8(a.RecvCompletionFlags))
	}
	switch a.RequestCompletionFlags {
	case CompletionDefault, CompletionUnsignalled, CompletionEVDThreshold:
	default:
		return fail(ErrInvalidParameter, "RequestCompletionFlags %#x; use default, unsignalled or EVD threshold", uint8(a.RequestCompletionFlags))
	}
	return nil
}
