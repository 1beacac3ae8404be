package dat

import "net/netip"

// EPParam are the parameters of an endpoint (DAT_EP_PARAM).
type EPParam struct {
	IA           *IA
	State        EPState
	LocalAddress netip.Addr
	LocalPort    uint64 // port qualifier, which the peer's CR shows
	// RemoteAddress and RemotePort are zero without a connection or an attempt to make one. On the active side
	// RemotePort is the connection qualifier asked for, on the passive side the peer's port qualifier.
	RemoteAddress netip.Addr
	RemotePort    uint64

	PZ                              *PZ
	RecvEVD, RequestEVD, ConnectEVD *EVD
	SRQ                             *SRQ   // nil without one
	Attr                            EPAttr // as granted
}

// EPMask names parameters of an endpoint (DAT_EP_PARAM_MASK); the values are those of uDAPL 2.0.
type EPMask uint64

// Parameters of an endpoint (DAT_EP_FIELD_...). EPFieldServiceType and the fields after it are fields of EPAttr
// (DAT_EP_FIELD_EP_ATTR_...). EPFieldComm belongs to common service points, which this provider does not support.
const (
	EPFieldIA EPMask = 1 << iota
	EPFieldState
	EPFieldComm
	EPFieldLocalAddress
	EPFieldLocalPort
	EPFieldRemoteAddress
	EPFieldRemotePort
	EPFieldPZ
	EPFieldRecvEVD
	EPFieldRequestEVD
	EPFieldConnectEVD
	EPFieldSRQ
	EPFieldServiceType
	EPFieldMaxMessageSize
	EPFieldMaxRDMASize
	EPFieldQoS
	EPFieldRecvCompletionFlags
	EPFieldRequestCompletionFlags
	EPFieldMaxRecvDTOs
	EPFieldMaxRequestDTOs
	EPFieldMaxRecvIOV
	EPFieldMaxRequestIOV
	EPFieldMaxRDMAReadIn
	EPFieldMaxRDMAReadOut
	EPFieldSRQSoftHW
	EPFieldMaxRDMAReadIOV
	EPFieldMaxRDMAWriteIOV
	EPFieldNumTransportAttr
	EPFieldTransportAttr
	EPFieldNumProviderAttr
	EPFieldProviderAttr

	EPFieldAll EPMask = 1<<iota - 1
)

// Groups of parameters. Modify may change the parameters of a group in the same states: epFixed never, epTransport with
// callModifyTransport, epSetUp with callModify. epHandles are the parameters that are handles.
const (
	epFixed = EPFieldIA | EPFieldState | EPFieldComm | EPFieldLocalAddress | EPFieldLocalPort |
		EPFieldRemoteAddress | EPFieldRemotePort | EPFieldSRQ
	epTransport = EPFieldNumTransportAttr | EPFieldTransportAttr | EPFieldNumProviderAttr | EPFieldProviderAttr
	epSetUp     = EPFieldAll &^ (epFixed | EPFieldPZ | epTransport)
	epHandles   = EPFieldPZ | EPFieldRecvEVD | EPFieldRequestEVD | EPFieldConnectEVD
)

// Query returns the parameters of the endpoint, in any state (dat_ep_query).
func (ep *EP) Query() (EPParam, error) {
	if err := ep.lock(); err != nil {
		return EPParam{}, err
	}
	defer ep.mu.Unlock()
	return ep.param(), nil
}

// param returns the endpoint's parameters. mu is held.
func (ep *EP) param() EPParam {
	p := EPParam{IA: ep.ia, State: ep.State(), LocalAddress: ep.ia.a.address(), LocalPort: ep.port, PZ: ep.pz,
		RecvEVD: ep.recv, RequestEVD: ep.request, ConnectEVD: ep.connect, SRQ: ep.srq, Attr: ep.attr}
	switch h := ep.hold.Load(); {
	case !remoteDefined.has(p.State):
	case h != nil && h.cr != nil:
		p.RemoteAddress, p.RemotePort = h.cr.req.From.Addr(), h.cr.req.Port
	default:
		p.RemoteAddress, p.RemotePort = ep.remote.addr, ep.remote.port
	}
	return p
}

// set copies the parameters that mask names from another EPParam.
func (p *EPParam) set(mask EPMask, from *EPParam) {
	to, a := &p.Attr, &from.Attr
	for _, f := range []struct {
		field EPMask
		set   func()
	}{
		{EPFieldPZ, func() { p.PZ = from.PZ }},
		{EPFieldRecvEVD, func() { p.RecvEVD = from.RecvEVD }},
		{EPFieldRequestEVD, func() { p.RequestEVD = from.RequestEVD }},
		{EPFieldConnectEVD, func() { p.ConnectEVD = from.ConnectEVD }},
		{EPFieldServiceType, func() { to.ServiceType = a.ServiceType }},
		{EPFieldMaxMessageSize, func() { to.MaxMessageSize = a.MaxMessageSize }},
		{EPFieldMaxRDMASize, func() { to.MaxRDMASize = a.MaxRDMASize }},
		{EPFieldQoS, func() { to.QoS = a.QoS }},
		{EPFieldRecvCompletionFlags, func() { to.RecvCompletionFlags = a.RecvCompletionFlags }},
		{EPFieldRequestCompletionFlags, func() { to.RequestCompletionFlags = a.RequestCompletionFlags }},
		{EPFieldSRQSoftHW, func() { to.SRQSoftHW = a.SRQSoftHW }},
		{EPFieldMaxRecvDTOs, func() { to.MaxRecvDTOs = a.MaxRecvDTOs }},
		{EPFieldMaxRequestDTOs, func() { to.MaxRequestDTOs = a.MaxRequestDTOs }},
		{EPFieldMaxRecvIOV, func() { to.MaxRecvIOV = a.MaxRecvIOV }},
		{EPFieldMaxRequestIOV, func() { to.MaxRequestIOV = a.MaxRequestIOV }},
		{EPFieldMaxRDMAReadIn, func() { to.MaxRDMAReadIn = a.MaxRDMAReadIn }},
		{EPFieldMaxRDMAReadOut, func() { to.MaxRDMAReadOut = a.MaxRDMAReadOut }},
		{EPFieldMaxRDMAReadIOV, func() { to.MaxRDMAReadIOV = a.MaxRDMAReadIOV }},
		{EPFieldMaxRDMAWriteIOV, func() { to.MaxRDMAWriteIOV = a.MaxRDMAWriteIOV }},
	} {
		if mask&f.field != 0 {
			f.set()
		}
	}
}

// Modify changes the parameters that mask names (dat_ep_modify). It changes all of them or, if it fails, none. Which
// parameters may change depends on the state:
//
//	zone                         EPUnconnected, EPTentativeConnectionPending
//	dispatchers and attributes   these two, EPReserved, EPPassiveConnectionPending
//	RecvCompletionFlags          the same, before the first receive is posted
//	transport attributes         EPUnconnected
//	all others                   never
//
// Zero means the default where EPAttr says so. A nil dispatcher means none.
//
// Posted receives stay posted. A depth or a limit on segments that is too small for them is ErrInvalidState. After a
// change of the zone, receives with memory of the old zone fail with DTOLocalProtection when a message arrives.
//
// Errors: ErrInvalidParameter (mask or value), ErrInvalidHandle (zone or dispatcher), ErrModelNotSupported,
// ErrInvalidState.
func (ep *EP) Modify(mask EPMask, param *EPParam) error {
	if err := ep.usable(); err != nil {
		return err
	}
	switch {
	case mask&^EPFieldAll != 0:
		return fail(ErrInvalidParameter, "no parameters have the bits %#x", uint64(mask&^EPFieldAll))
	case mask&epFixed != 0:
		return fail(ErrInvalidParameter, "the parameters %#x never change", uint64(mask&epFixed))
	case mask == 0:
		return nil
	case param == nil:
		return fail(ErrInvalidParameter, "no parameters are given")
	}
	if err := ep.ia.lock(); err != nil {
		return err
	}
	defer ep.ia.mu.Unlock()
	if err := ep.lock(); err != nil {
		return err
	}
	defer ep.mu.Unlock()
	return ep.modify(mask, param)
}

func (ep *EP) modify(mask EPMask, param *EPParam) error {
	if err := param.handles(ep.ia, mask); err != nil {
		return err
	}
	was := ep.param()
	now := was
	now.set(mask, param)
	now.Attr.setDefaults()
	if err := now.Attr.validate(); err != nil {
		return err
	}
	now.grant()
	if err := ep.mayModify(mask); err != nil {
		return err
	}
	if err := ep.ia.a.refer(&was, &now); err != nil {
		return err
	}
	if err := ep.conn.Reconfigure(ep.config(&now)); err != nil {
		_ = ep.ia.a.refer(&now, &was) // cannot fail: the old streams went together before
		return status(err)
	}
	ep.adopt(&now)
	ep.pz, ep.attr, ep.recv, ep.request, ep.connect = now.PZ, now.Attr, now.RecvEVD, now.RequestEVD, now.ConnectEVD
	return nil
}

// mayModify returns ErrInvalidState if the parameters in mask cannot change in the current state.
func (ep *EP) mayModify(mask EPMask) error {
	for _, g := range []struct {
		fields EPMask
		call   epCall
	}{{EPFieldPZ, callModifyPZ}, {epSetUp, callModify}, {epTransport, callModifyTransport}} {
		if mask&g.fields == 0 {
			continue
		}
		if err := ep.may(g.call); err != nil {
			return err
		}
	}
	if mask&EPFieldRecvCompletionFlags != 0 && !ep.conn.NeverReceived() {
		return fail(ErrInvalidState, "completion flags of receives change before the first is posted")
	}
	return nil
}
