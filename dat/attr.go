package dat

// ConnQual names a service of an adapter (DAT_CONN_QUAL).
type ConnQual uint64

// CloseFlags choose between ending at once and ending in order (DAT_CLOSE_FLAGS).
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
	QoSEconomy        QoS = 0x04 // neither
	QoSPremium        QoS = 0x08 // both
)

// CompletionFlags qualify a post, and say how the completions of an endpoint count
// (DAT_COMPLETION_FLAGS).
type CompletionFlags uint8

// Completion flags.
const (
	CompletionDefault       CompletionFlags = 0
	CompletionSuppress      CompletionFlags = 0x01 // no completion if it succeeds
	CompletionSolicitedWait CompletionFlags = 0x02 // send, write with immediate data: the peer's receive notifies
	CompletionUnsignalled   CompletionFlags = 0x04 // the completion does not notify
	CompletionBarrierFence  CompletionFlags = 0x08 // it waits for all earlier RDMA reads and atomics

	// CompletionEVDThreshold is an attribute of endpoints only: every completion counts for the
	// threshold of EVD.Wait.
	CompletionEVDThreshold CompletionFlags = 0x10
)

// EVDFlags say which streams of events an EVD takes (DAT_EVD_FLAGS).
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
	evdSlow                = EVDSoftware | EVDCR | EVDAsync // do not come from an engine's queue
)

// PSPFlags say who makes the endpoints of a service point (DAT_PSP_FLAGS).
type PSPFlags uint8

// Service point flags.
const (
	PSPConsumer PSPFlags = 0
	PSPProvider PSPFlags = 1
)

// MemPriv are the rights of a memory region (DAT_MEM_PRIV_FLAGS).
type MemPriv uint8

// Memory rights.
const (
	MemNone        MemPriv = 0
	MemLocalRead   MemPriv = 0x01
	MemRemoteRead  MemPriv = 0x02
	MemLocalWrite  MemPriv = 0x10
	MemRemoteWrite MemPriv = 0x20
	MemAll         MemPriv = MemLocalRead | MemRemoteRead | MemLocalWrite | MemRemoteWrite
)

// EPState is where an endpoint stands (DAT_EP_STATE).
type EPState uint8

// Endpoint states; the values are those of DAT_EP_STATE.
const (
	EPUnconnected                EPState = 0
	EPReserved                   EPState = 2 // by a reserved service point that listens
	EPPassiveConnectionPending   EPState = 4 // its request is not answered
	EPActiveConnectionPending    EPState = 6
	EPTentativeConnectionPending EPState = 7 // made by the provider for a request that is not answered
	EPConnected                  EPState = 9
	EPDisconnectPending          EPState = 10
	EPDisconnected               EPState = 11
	EPCompletionPending          EPState = 12
)

var epStateNames = map[EPState]string{
	EPUnconnected: "UNCONNECTED", EPReserved: "RESERVED",
	EPPassiveConnectionPending: "PASSIVE_CONNECTION_PENDING", EPActiveConnectionPending: "ACTIVE_CONNECTION_PENDING",
	EPTentativeConnectionPending: "TENTATIVE_CONNECTION_PENDING",
	EPConnected:                  "CONNECTED", EPDisconnectPending: "DISCONNECT_PENDING",
	EPDisconnected: "DISCONNECTED", EPCompletionPending: "COMPLETION_PENDING",
}

// String is the DAT name without its prefix.
func (s EPState) String() string { return enumName(epStateNames[s], "DAT_EP_STATE", s) }

// LMRTriplet is a piece of registered local memory (DAT_LMR_TRIPLET, which it is in memory, too). LMR.Segment makes one.
// Posts do not keep the slice of triplets that they are given.
type LMRTriplet struct {
	Address uint64
	Length  uint32 // bytes; a triplet of length 0 is ignored
	Context uint32 // LMR.Context
}

// RMRTriplet is a range of memory at the peer (DAT_RMR_TRIPLET): the context and address it told us.
type RMRTriplet struct {
	Context uint32
	Address uint64
	Length  uint64 // bytes
}

// ServiceType is the kind of connection (DAT_SERVICE_TYPE).
type ServiceType uint8

// ServiceRC is a reliable connection, the one kind that there is.
const ServiceRC ServiceType = 0

// ConnectFlags qualify a connection (DAT_CONNECT_FLAGS).
type ConnectFlags uint8

// Connect flags. There is one path: more can be requested, and not be required.
const (
	ConnectDefault            ConnectFlags = 0
	ConnectMultipathRequested ConnectFlags = 0x01
	ConnectMultipathRequired  ConnectFlags = 0x02
	connectAll                             = ConnectMultipathRequested | ConnectMultipathRequired
)

// EPAttr are the attributes of an endpoint (DAT_EP_ATTR). Zero in a size or an IOV limit means the
// provider's default. A size is a minimum: an endpoint of its own is granted 2^31-1, since a size costs
// nothing. An endpoint with a shared receive queue is granted exactly the sizes asked for, as
// dat_ep_create_with_srq says. Depths, segments and RDMA reads are granted as asked for.
// EP.Query returns what was granted.
type EPAttr struct {
	ServiceType                   ServiceType
	QoS                           QoS
	MaxMessageSize, MaxRDMASize   uint32 // bytes of one operation, at least; 0: 2^31-1
	MaxRecvDTOs, MaxRequestDTOs   int    // operations outstanding
	MaxRecvIOV, MaxRequestIOV     int    // segments of one operation
	MaxRDMAReadIn, MaxRDMAReadOut int    // RDMA reads served, and outstanding, at one time
	MaxRDMAReadIOV                int    // segments of one RDMA read; 0: MaxRequestIOV
	MaxRDMAWriteIOV               int    // segments of one RDMA write; 0: MaxRequestIOV
	SRQSoftHW                     int    // soft high watermark with a shared receive queue; 0 or WatermarkInfinite: none

	// RecvCompletionFlags say which completions of receives are notifications:
	// CompletionEVDThreshold or CompletionDefault all; CompletionUnsignalled those not posted with
	// that flag, which is legal only then; CompletionSolicitedWait those that the peer posted with that
	// flag. Failures always are. All streams of a dispatcher have to agree.
	RecvCompletionFlags CompletionFlags
	// RequestCompletionFlags are the same for requests, without CompletionSolicitedWait.
	RequestCompletionFlags CompletionFlags
}

// DefaultEPAttr are the attributes of an endpoint created with nil.
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

// grant raises valid sizes to what an endpoint without a shared receive queue gets.
func (p *EPParam) grant() {
	if p.SRQ == nil {
		p.Attr.MaxMessageSize, p.Attr.MaxRDMASize = maxSize, maxSize
	}
}

// setDefaults fills in the limits of sizes and segments that were left out.
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

// validate checks attributes, the defaults filled in.
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

// validateCompletion checks the completion flags alone.
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
