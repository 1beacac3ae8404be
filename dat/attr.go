package dat

// ConnQual is a connection qualifier (DAT_CONN_QUAL): a number that identifies a service at an address, as a port
// number does in TCP.
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

// CompletionFlags are the flags of a post (DAT_COMPLETION_FLAGS). As attributes of an endpoint, the flags decide which
// of the endpoint's completions are notifications. A notification is an event that may end EVD.Wait or trigger a CNO.
type CompletionFlags uint8

// Completion flags.
const (
	CompletionDefault CompletionFlags = 0
	// CompletionSuppress: a request that succeeds has no completion.
	CompletionSuppress CompletionFlags = 0x01
	// CompletionSolicitedWait: the completion of the peer's receive for this message is a notification. This flag is
	// for sends and for RDMA writes with immediate data.
	CompletionSolicitedWait CompletionFlags = 0x02
	// CompletionUnsignalled: the operation has a completion, but a completion with success is not a notification.
	CompletionUnsignalled CompletionFlags = 0x04
	// CompletionBarrierFence: the request starts after all earlier RDMA reads and atomics have completed.
	CompletionBarrierFence CompletionFlags = 0x08
	// CompletionEVDThreshold is an attribute of endpoints, not a flag of posts. With it, every completion counts toward
	// the threshold of EVD.Wait.
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
	// evdSlow has the streams whose events are queued in EVD.slow, not in an engine's queue.
	evdSlow = EVDSoftware | EVDCR | EVDAsync
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
	EPReserved                   EPState = 2 // a reserved service point that listens holds the endpoint
	EPPassiveConnectionPending   EPState = 4 // an unanswered connection request holds the endpoint
	EPActiveConnectionPending    EPState = 6 // Connect was called; the peer has not answered yet
	EPTentativeConnectionPending EPState = 7 // the provider created the endpoint for an unanswered connection request
	EPConnected                  EPState = 9
	EPDisconnectPending          EPState = 10 // after a graceful disconnect, until all outstanding requests have completed
	EPDisconnected               EPState = 11
	EPCompletionPending          EPState = 12 // Accept was called; the peer has not confirmed yet
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

// LMRTriplet names a range of registered local memory. It has the memory layout of DAT_LMR_TRIPLET. LMR.Segment
// returns an LMRTriplet. A post copies its triplets, so the caller may reuse the slice.
type LMRTriplet struct {
	Address uint64
	Length  uint32 // bytes; a triplet of length 0 is ignored
	Context uint32 // LMR.Context
}

// RMRTriplet names a range of the peer's memory (DAT_RMR_TRIPLET). The peer's program calls LMR.Remote or RMR.Bind to
// get the values, and sends them to this side, for example in a message.
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

// EPAttr are the attributes of an endpoint (DAT_EP_ATTR). The program requests values; EP.Query returns the granted
// values:
//
//   - MaxMessageSize and MaxRDMASize of an endpoint without a shared receive queue: 2^31-1 bytes, whatever was
//     requested, because a larger limit costs nothing.
//   - MaxMessageSize and MaxRDMASize of an endpoint with a shared receive queue: the requested values, as
//     dat_ep_create_with_srq requires.
//   - Other attributes: the requested values.
type EPAttr struct {
	ServiceType                 ServiceType
	QoS                         QoS
	MaxMessageSize, MaxRDMASize uint32 // bytes of one operation; 0 means 2^31-1
	MaxRecvDTOs                 int    // outstanding receives
	MaxRequestDTOs              int    // outstanding requests
	MaxRecvIOV                  int    // segments of one receive; 0 means 4
	MaxRequestIOV               int    // segments of one request; 0 means 4
	MaxRDMAReadIn               int    // RDMA reads of the peer that this endpoint serves at the same time
	MaxRDMAReadOut              int    // outstanding RDMA reads of this endpoint
	MaxRDMAReadIOV              int    // segments of one RDMA read; 0 means MaxRequestIOV
	MaxRDMAWriteIOV             int    // segments of one RDMA write; 0 means MaxRequestIOV
	SRQSoftHW                   int    // soft high watermark of EP.SetWatermark; 0 or WatermarkInfinite: no watermark

	// RecvCompletionFlags decides which completions of receives are notifications:
	//
	//   - CompletionEVDThreshold or CompletionDefault: all completions.
	//   - CompletionUnsignalled: all completions except the completions of receives that were posted with the flag
	//     CompletionUnsignalled. PostRecv accepts that flag only if the attribute has this value.
	//   - CompletionSolicitedWait: the completions of messages that the peer posted with the flag
	//     CompletionSolicitedWait.
	//
	// The completion of a failed receive is always a notification. A stream is the events of one kind from one object,
	// such as the completions of an endpoint's receives. If one stream that feeds an EVD has CompletionUnsignalled or
	// CompletionSolicitedWait, all streams of that EVD must have the same flag.
	RecvCompletionFlags CompletionFlags
	// RequestCompletionFlags decides which completions of requests are notifications. The values have the same meaning
	// as in RecvCompletionFlags, but CompletionSolicitedWait is not legal.
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

// grantSizes sets the attributes MaxMessageSize and MaxRDMASize to the largest possible size, if the endpoint has no
// shared receive queue. The caller has validated the attributes.
func (p *EPParam) grantSizes() {
	if p.SRQ == nil {
		p.Attr.MaxMessageSize, p.Attr.MaxRDMASize = maxSize, maxSize
	}
}

// setDefaults sets the attributes that are zero to their defaults, if they are maximum sizes or maximum numbers of
// segments (IOV).
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
